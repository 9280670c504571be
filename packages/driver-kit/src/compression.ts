/** Tracks active `node:zlib` streams. They work in threads that `process.getActiveResourcesInfo` does not list. */

import { Transform } from 'node:stream';
import { createGzip } from 'node:zlib';

/** Key of the set of busy streams on the base class of `node:zlib` streams, shared by all copies of the kit. */
const WORKING = Symbol.for('@nodepool/driver-kit/compression');

interface WatchedClass {
  _transform: Transform['_transform'];
  [WORKING]?: Set<Transform>;
}

const streams = classOf(createGzip());
const working = streams[WORKING] ?? watch(streams);

/** Returns true if a chunk is being compressed or decompressed. */
export function isCompressing(): boolean {
  // A stream pauses while its output is not read.
  return [...working].some(
    ({ destroyed, readableLength, readableHighWaterMark }) => !destroyed && readableLength < readableHighWaterMark,
  );
}

function watch(base: WatchedClass): Set<Transform> {
  const busy = new Set<Transform>();
  const { _transform: original } = base;
  base._transform = function transform(this: Transform, chunk, encoding, done) {
    busy.add(this);
    original.call(this, chunk, encoding, (error, data) => {
      busy.delete(this);
      done(error, data);
    });
  };
  base[WORKING] = busy;
  return busy;
}

/** Returns the prototype that has `_transform`, directly below `Transform.prototype`. */
function classOf(stream: Transform): WatchedClass {
  for (let each: object = stream; each !== Transform.prototype; each = Object.getPrototypeOf(each) as object) {
    if (Object.hasOwn(each, '_transform')) return each as WatchedClass;
  }
  throw new Error('the streams of node:zlib have no _transform of their own');
}
