/** Watches the streams of `node:zlib`, which work in threads that `process.getActiveResourcesInfo` does not list. */

import { Transform } from 'node:stream';
import { createGzip } from 'node:zlib';

/** Where the class that all streams of `node:zlib` extend has the busy ones: the kit may be loaded more than once. */
const WORKING = Symbol.for('@nodepool/driver-kit/compression');

interface WatchedClass {
  _transform: Transform['_transform'];
  [WORKING]?: Set<Transform>;
}

const streams = classOf(createGzip());
const working = streams[WORKING] ?? watch(streams);

/** True if a piece of data is being compressed or decompressed now. */
export function isCompressing(): boolean {
  // A stream whose result is not read pauses.
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

/** The prototype that has `_transform`, below the one of `Transform`. */
function classOf(stream: Transform): WatchedClass {
  for (let each: object = stream; each !== Transform.prototype; each = Object.getPrototypeOf(each) as object) {
    if (Object.hasOwn(each, '_transform')) return each as WatchedClass;
  }
  throw new Error('the streams of node:zlib have no _transform of their own');
}
