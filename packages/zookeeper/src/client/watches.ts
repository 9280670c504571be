/**
 * The watches of a client: those that are told once, and persistent ones. Paths are the client's.
 *
 * A server of version 3.8 knows one kind of watch per path and session: a one-shot watch set at the path of a persistent
 * one would replace it (ZOOKEEPER-4466). So where a persistent watch is, one-shot watches are not asked for but served
 * from its events, and so are two kinds of persistent watches at one path.
 */

import type { PersistentWatch, WatchEvent, WatchListener } from '../api.js';
import { callListener } from './emitter.js';
import type { WatchPaths } from './operations.js';
import { parentPath } from './paths.js';

export type OneShotListener = (event: WatchEvent) => void;

/** What a one-shot watch waits for: `data` and `child` of a znode that is there, `exist` of one that is not. */
export type OneShotKind = 'data' | 'exist' | 'child';

/** How the registry asks the server. Answers come back through `wasSet`. */
export interface WatchPort {
  addWatch(path: string, mode: PersistentWatch['mode'], registration: Registration): void;
  removeWatches(path: string): void;
}

/** A listener with its watch. */
export interface Registration {
  readonly watch: PersistentWatch;
  readonly listener: WatchListener;
  open: boolean;
}

/** What is set at the server for one path. */
interface Entry {
  mode: PersistentWatch['mode'];
  readonly registrations: Set<Registration>;
  /** Reads that rely on it instead of a one-shot watch of their own. */
  pins: number;
}

/** Servers limit the length of a request; so does ours when watches are set again. */
const BATCH_BYTES = 128 * 1024;

export class WatchRegistry {
  private readonly oneShots: Record<OneShotKind, Map<string, Set<OneShotListener>>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  private readonly entries = new Map<string, Entry>();
  private connected = false;

  constructor(private readonly port: WatchPort) {}

  addOneShot(kind: OneShotKind, path: string, listener: OneShotListener): void {
    const listeners = this.oneShots[kind].get(path);
    if (listeners === undefined) this.oneShots[kind].set(path, new Set([listener]));
    else listeners.add(listener);
  }

  /**
   * Asks whether a one-shot watch at `path` can be served from a persistent watch. If so, that stays until the returned
   * function is called. Undefined: the server must be asked for a watch.
   */
  pin(path: string): (() => void) | undefined {
    const entry = this.entries.get(path);
    if (entry === undefined) return undefined;
    entry.pins++;
    return () => {
      entry.pins--;
      this.removeIfUnused(path);
    };
  }

  addPersistent(path: string, mode: PersistentWatch['mode'], listener: WatchListener): PersistentWatch {
    const watch: PersistentWatch = { path, mode, close: () => this.close(registration) };
    const registration: Registration = { watch, listener, open: true };
    let entry = this.entries.get(path);
    if (entry === undefined) {
      entry = { mode, registrations: new Set(), pins: 0 };
      this.entries.set(path, entry);
    }
    if (mode === 'persistent-recursive') entry.mode = mode;
    entry.registrations.add(registration);
    if (this.connected) this.port.addWatch(path, entry.mode, registration);
    return watch;
  }

  /** The server confirmed that these are set: from now on their events flow. */
  wasSet(registrations: readonly Registration[]): void {
    for (const { open, listener } of registrations) {
      if (open && listener.onReset !== undefined) callListener(() => listener.onReset?.());
    }
  }

  /** The connection is gone: until `batches` are sent over the next one, nothing is asked of the server. */
  disconnected(): void {
    this.connected = false;
  }

  /** There is a connection again. What must be set on it, in portions that fit into a request each. */
  connect(): { readonly paths: WatchPaths; readonly registrations: readonly Registration[] }[] {
    this.connected = true;
    const batches: Batch[] = [];
    let bytes = Infinity;
    const add = (kind: keyof WatchPaths, path: string, registrations?: Iterable<Registration>): void => {
      bytes += Buffer.byteLength(path) + 4;
      if (bytes > BATCH_BYTES) {
        batches.push(emptyBatch());
        bytes = 0;
      }
      const batch = batches.at(-1);
      batch?.paths[kind].push(path);
      if (registrations !== undefined) batch?.registrations.push(...registrations);
    };
    // Those that are told once come first, also where a persistent one takes their place at once: setting them makes
    // the server tell of what was missed.
    for (const kind of ['data', 'exist', 'child'] as const) {
      for (const path of this.oneShots[kind].keys()) add(kind, path);
    }
    for (const [path, { mode, registrations }] of this.entries) {
      add(mode === 'persistent' ? 'persistent' : 'recursive', path, registrations);
    }
    return batches;
  }

  /** Tells every one-shot listener that its watch is gone, and forgets it. */
  dropOneShots(): void {
    for (const kind of ['data', 'exist', 'child'] as const) {
      const all = [...this.oneShots[kind]];
      this.oneShots[kind].clear();
      for (const [path, listeners] of all) {
        for (const listener of listeners) callListener(listener, { type: 'watch-removed', path });
      }
    }
    for (const path of [...this.entries.keys()]) this.removeIfUnused(path);
  }

  /** Hands an event to everybody whom it concerns. */
  dispatch(event: WatchEvent): void {
    const { type, path } = event;
    switch (type) {
      case 'created':
      case 'changed':
        this.fire('data', event);
        this.fire('exist', event);
        break;
      case 'deleted':
        this.fire('data', event);
        this.fire('exist', event);
        this.fire('child', event);
        break;
      case 'children':
        this.fire('child', event);
        break;
      case 'watch-removed':
        return;
    }
    this.tellPersistent(event);
    // A recursive watch is not told of changed lists of children, but of the children themselves.
    if (type !== 'created' && type !== 'deleted') return;
    const parent = parentPath(path);
    if (parent === undefined || this.entries.get(parent)?.mode !== 'persistent-recursive') return;
    const ofParent: WatchEvent = { type: 'children', path: parent };
    this.fire('child', ofParent);
    this.tellPersistent(ofParent);
  }

  private tellPersistent(event: WatchEvent): void {
    if (this.entries.size === 0) return;
    const { type } = event;
    for (let at: string | undefined = event.path; at !== undefined; at = parentPath(at)) {
      const entry = this.entries.get(at);
      if (entry === undefined) continue;
      for (const registration of [...entry.registrations]) {
        const { mode } = registration.watch;
        const concerned = mode === 'persistent' ? at === event.path : type !== 'children';
        if (concerned && registration.open) callListener((told) => registration.listener.onEvent(told), event);
      }
    }
  }

  private fire(kind: OneShotKind, event: WatchEvent): void {
    const listeners = this.oneShots[kind].get(event.path);
    if (listeners === undefined) return;
    this.oneShots[kind].delete(event.path);
    for (const listener of listeners) callListener(listener, event);
    this.removeIfUnused(event.path);
  }

  private close(registration: Registration): void {
    if (!registration.open) return;
    registration.open = false;
    const { path } = registration.watch;
    this.entries.get(path)?.registrations.delete(registration);
    this.removeIfUnused(path);
  }

  private removeIfUnused(path: string): void {
    const entry = this.entries.get(path);
    if (entry === undefined || entry.pins > 0 || entry.registrations.size > 0) return;
    if (this.oneShots.data.has(path) || this.oneShots.exist.has(path) || this.oneShots.child.has(path)) return;
    this.entries.delete(path);
    if (this.connected) this.port.removeWatches(path);
  }
}

interface Batch {
  readonly paths: { readonly [K in keyof WatchPaths]: string[] };
  readonly registrations: Registration[];
}

function emptyBatch(): Batch {
  return { paths: { data: [], exist: [], child: [], persistent: [], recursive: [] }, registrations: [] };
}
