/** The watches of the cluster: streams of events, bookmarks and errors. */

import { PassThrough, type Readable } from 'node:stream';
import type { JsonObject, Timer } from '@nodepool/core';
import type { CloudState } from '@nodepool/simulated-cloud';
import { statusObject } from './api-error.js';
import type { Kind } from './kinds.js';
import type { Matches } from './selectors.js';
import type { ClusterSettings } from './settings.js';
import type { Change, Store, StoredObject } from './store.js';

export interface WatchRequest {
  readonly kind: Kind;
  /** Kind whose changes are watched, if it differs from the kind that is shown. */
  readonly source: Kind;
  readonly namespace: string | undefined;
  readonly matches: Matches;
  /** Version from which the watch continues; undefined for the present one. */
  readonly since: number | undefined;
  /** True if the existing objects are sent first. */
  readonly sendsExisting: boolean;
  readonly wantsBookmarks: boolean;
  readonly timeoutSeconds: number;
  /** Converts a stored object to the kind that is shown. */
  readonly show: (object: StoredObject) => JsonObject;
}

export class Watches {
  private readonly open = new Set<PassThrough>();

  constructor(
    private readonly state: CloudState<ClusterSettings>,
    private readonly store: Store,
  ) {}

  get count(): number {
    return this.open.size;
  }

  /** Returns the stream of a watch, which ends at its timeout or with the connection. */
  start(request: WatchRequest): Readable {
    const { clock, settings } = this.state;
    const stream = new PassThrough();
    const write =
      settings.splitEventsMs === undefined ? writer(stream) : this.splitting(stream, settings.splitEventsMs);
    const send = (type: string, object: JsonObject): void => write(`${JSON.stringify({ type, object })}\n`);
    if (request.sendsExisting) {
      const existing = this.store.list(request.source, request.namespace).filter(request.matches);
      for (const object of existing) send('ADDED', request.show(object));
    }
    const stop = this.store.follow(request.since, (change) => {
      const event = eventOf(change, request);
      if (event !== undefined) send(event.type, request.show(event.object));
    });
    if (stop === undefined) {
      const message = `too old resource version: ${request.since ?? 0} (${this.store.version})`;
      send('ERROR', statusObject(410, message));
      stream.end();
      return stream;
    }
    let bookmark: Timer | undefined;
    const schedule = (): void => {
      bookmark = clock.schedule(
        settings.bookmarkMs,
        () => {
          const { apiVersion, kind } = request.kind;
          const resourceVersion = String(this.store.version);
          send('BOOKMARK', { apiVersion, kind, metadata: { resourceVersion, creationTimestamp: null } });
          schedule();
        },
        { background: true },
      );
    };
    if (request.wantsBookmarks) schedule();
    const end = clock.schedule(request.timeoutSeconds * 1000, () => stream.end(), { background: true });
    this.open.add(stream);
    stream.once('close', () => {
      this.open.delete(stream);
      stop();
      bookmark?.cancel();
      end.cancel();
    });
    return stream;
  }

  /** Returns a function that writes texts in two halves. */
  private splitting(stream: PassThrough, delayMs: number): (text: string) => void {
    let rest = '';
    return (text) => {
      const half = text.length >> 1;
      stream.write(rest + text.slice(0, half));
      rest = text.slice(half);
      this.state.clock.schedule(delayMs, () => {
        if (stream.writable) stream.write(rest);
        rest = '';
      });
    };
  }

  /** Breaks the connections of all watches. */
  drop(): void {
    for (const stream of [...this.open]) stream.destroy(new Error('the watch was dropped'));
  }

  /** Ends all watches as their timeouts do. */
  end(): void {
    for (const stream of [...this.open]) stream.end();
  }
}

function writer(stream: PassThrough): (text: string) => void {
  return (text) => void stream.write(text);
}

/** Returns the event of a change for a watch with a selector: objects enter and leave the selection. */
function eventOf(
  { type, kind, object, before }: Change,
  { source, namespace, matches }: WatchRequest,
): { readonly type: string; readonly object: StoredObject } | undefined {
  if (kind !== source || (namespace !== undefined && object.metadata.namespace !== namespace)) return undefined;
  const did = before !== undefined && matches(before);
  const does = type !== 'DELETED' && matches(object);
  if (did && does) return { type: 'MODIFIED', object };
  if (does) return { type: 'ADDED', object };
  return did ? { type: 'DELETED', object: withVersion(before, object) } : undefined;
}

function withVersion(before: StoredObject, { metadata }: StoredObject): StoredObject {
  return { ...before, metadata: { ...before.metadata, resourceVersion: metadata.resourceVersion } };
}
