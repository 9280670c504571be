/**
 * The one-shot and persistent watches of a client. Paths are relative to the chroot.
 *
 * ZooKeeper 3.8 has one watch mode per path and session, so a one-shot watch would replace a persistent watch at the
 * same path (ZOOKEEPER-4466). Therefore a persistent watch at the server also serves the one-shot watches and the
 * watches of another mode at its path.
 */

import type { PersistentWatch, WatchEvent, WatchKind, WatchListener } from '../api.js';
import type { ZooKeeperError } from '../errors.js';
import { callListener, throwLater } from './emitter.js';
import type { WatchPaths } from './operations.js';

export type OneShotListener = (event: WatchEvent) => void;

/** Kind of a one-shot watch: `data` and `child` for an existing znode, `exist` for a missing one. */
export type OneShotKind = 'data' | 'exist' | 'child';

/** Access of the registry to the server, which answers through `wasSet` and `refused`. */
export interface WatchPort {
  addWatch(path: string, mode: PersistentWatch['mode'], registration: Registration): void;
  removeWatches(path: string): void;
  /** Sets a one-shot watch without a read. */
  setOneShot(kind: OneShotKind, path: string): void;
  warn(error: ZooKeeperError): void;
}

export interface Registration {
  readonly watch: PersistentWatch;
  readonly listener: WatchListener;
  open: boolean;
}

/** The persistent watch at the server for one path. */
interface Entry {
  readonly path: string;
  mode: PersistentWatch['mode'];
  /** Replaced at every change, so that a notification needs no copy. */
  registrations: readonly Registration[];
  /** Number of pending reads that rely on it instead of setting a one-shot watch. */
  pins: number;
  /** True if the server refused it. */
  refused: boolean;
}

/** A length that paths with a persistent watch have. */
interface Level {
  readonly length: number;
  /** The entry that was found last. The next event often concerns it too, and comparing is faster than a look-up. */
  recent: Entry | undefined;
}

/** A pending read that sets a one-shot watch. */
export interface WatchingRead {
  /** True if the request must set the watch at the server; otherwise a persistent watch serves it. */
  readonly askServer: boolean;
  /** Ends the read, with the kind of the watch, or undefined if the read failed. Call it once. */
  done(kind: OneShotKind | undefined): void;
}

const KINDS_OF: Readonly<Record<WatchKind, readonly OneShotKind[]>> = {
  data: ['data', 'exist'],
  children: ['child'],
  any: ['data', 'exist', 'child'],
};

const SLASH = 0x2f;

/** Limit of the paths in one `setWatches` request, bytes. Servers limit the size of a request. */
const BATCH_BYTES = 128 * 1024;

export class WatchRegistry {
  private readonly oneShots: Record<OneShotKind, Map<string, Set<OneShotListener>>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  private readonly entries = new Map<string, Entry>();
  /** The different lengths of the paths in `entries`, longest first; undefined after a change of `entries`. */
  private levels: readonly Level[] | undefined;
  /** Number of pending reads that set a watch at the server, by path. */
  private readonly asking = new Map<string, number>();
  private connected = false;

  constructor(private readonly port: WatchPort) {}

  /** Starts a read that sets a one-shot watch for `listener`. */
  watchingRead(path: string, listener: OneShotListener): WatchingRead {
    const entry = this.entries.get(path);
    if (entry === undefined) {
      this.asking.set(path, (this.asking.get(path) ?? 0) + 1);
      return {
        askServer: true,
        done: (kind) => {
          this.endAsking(path);
          if (kind !== undefined) this.addOneShot(kind, path, listener);
          this.removeIfUnused(path);
        },
      };
    }
    entry.pins++;
    return {
      askServer: false,
      done: (kind) => {
        entry.pins--;
        if (kind !== undefined) {
          this.addOneShot(kind, path, listener);
          if (entry.refused && this.connected) this.port.setOneShot(kind, path);
        }
        this.removeIfUnused(path);
      },
    };
  }

  /**
   * Removes one-shot listeners and sends them `watch-removed`. Returns the kind of watch to remove at the server,
   * undefined if it must stay, or `none` if there was no such listener.
   */
  removeOneShots(path: string, kind: WatchKind, listener: OneShotListener | undefined): WatchKind | 'none' | undefined {
    const removed = new Set<OneShotListener>();
    const emptied = new Set<WatchKind>();
    for (const from of KINDS_OF[kind]) {
      const listeners = this.oneShots[from].get(path);
      if (listeners === undefined) continue;
      for (const one of [...listeners]) {
        if ((listener !== undefined && one !== listener) || !listeners.delete(one)) continue;
        removed.add(one);
        emptied.add(from === 'child' ? 'children' : 'data');
      }
      if (listeners.size === 0) this.oneShots[from].delete(path);
    }
    if (removed.size === 0) return 'none';
    for (const one of removed) callListener(one, { type: 'watch-removed', path });
    const shared = !this.connected || this.entries.has(path) || this.asking.has(path);
    this.removeIfUnused(path);
    // Other listeners or pending reads rely on the watch at the server, and an event without a listener is harmless.
    if (shared) return undefined;
    for (const one of [...emptied]) if (this.waitsFor(one, path)) emptied.delete(one);
    if (emptied.size === 2) return 'any';
    return [...emptied][0];
  }

  addPersistent(path: string, mode: PersistentWatch['mode'], listener: WatchListener): PersistentWatch {
    const watch: PersistentWatch = { path, mode, close: () => this.close(registration) };
    const registration: Registration = { watch, listener, open: true };
    let entry = this.entries.get(path);
    if (entry === undefined) {
      entry = { path, mode, registrations: [], pins: 0, refused: false };
      this.entries.set(path, entry);
      this.levels = undefined;
    }
    if (mode === 'persistent-recursive') entry.mode = mode;
    entry.registrations = [...entry.registrations, registration];
    if (this.connected) this.port.addWatch(path, entry.mode, registration);
    return watch;
  }

  /** Notifies the listeners that the server has set their watches. */
  wasSet(registrations: readonly Registration[]): void {
    for (const { open, listener } of registrations) {
      if (open && listener.onReset !== undefined) callListener(() => listener.onReset?.());
    }
  }

  /** Closes watches that the server refused, and notifies their listeners. */
  refused(registrations: readonly Registration[], error: ZooKeeperError): void {
    for (const registration of registrations) {
      if (!registration.open) continue;
      registration.open = false;
      const { path } = registration.watch;
      const entry = this.entries.get(path);
      if (entry !== undefined) removeRegistration(entry, registration);
      if (entry?.registrations.length === 0) {
        entry.refused = true;
        this.removeEntry(path);
      }
      const { listener } = registration;
      if (listener.onError === undefined) this.port.warn(error);
      else callListener(() => listener.onError?.(error));
    }
  }

  /** Handles the loss of the connection. Sends nothing to the server until `connect`. */
  disconnected(): void {
    this.connected = false;
  }

  /** Handles a new connection. Returns the watches to set on it, in batches that fit into one request each. */
  connect(): { readonly paths: WatchPaths; readonly registrations: readonly Registration[] }[] {
    this.connected = true;
    const batches: Batch[] = [];
    let bytes = Infinity;
    const add = (kind: keyof WatchPaths, path: string, registrations?: readonly Registration[]): void => {
      bytes += Buffer.byteLength(path) + 4;
      if (bytes > BATCH_BYTES) {
        batches.push(emptyBatch());
        bytes = 0;
      }
      const batch = batches.at(-1);
      batch?.paths[kind].push(path);
      if (registrations !== undefined) batch?.registrations.push(...registrations);
    };
    // One-shot watches come first, even if a persistent one replaces them at once, because setting them makes the
    // server send missed events.
    for (const kind of ['data', 'exist', 'child'] as const) {
      for (const path of this.oneShots[kind].keys()) add(kind, path);
    }
    for (const [path, { mode, registrations }] of this.entries) {
      add(mode === 'persistent' ? 'persistent' : 'recursive', path, registrations);
    }
    return batches;
  }

  /** Removes all one-shot listeners and sends them `watch-removed`. */
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

  /** Passes an event to the listeners concerned: of one-shot watches first, then of the longest path first. */
  dispatch(event: WatchEvent): void {
    const { type, path } = event;
    const { data, exist, child } = this.oneShots;
    if (data.has(path) || exist.has(path) || child.has(path)) this.fireOneShots(event);
    const changesChildren = type === 'created' || type === 'deleted';
    const parentLength = Math.max(1, path.lastIndexOf('/'));
    let parent: Entry | undefined;
    this.levels ??= levelsOf(this.entries.keys());
    const { levels } = this;
    // Every event comes here: an index takes less time than an iterator.
    for (let index = 0; index < levels.length; index += 1) {
      const level = levels[index];
      if (level === undefined) break;
      const { length, recent } = level;
      // The path of an ancestor, except the root, ends before a slash. Most levels therefore need no look-up.
      if (length > 1 && length !== path.length && path.charCodeAt(length) !== SLASH) continue;
      const entry = recent !== undefined && path.startsWith(recent.path) ? recent : this.find(level, path);
      if (entry === undefined) continue;
      const own = length === path.length;
      notify(entry, event, own);
      // A recursive watch gets no events of child lists, only of the children themselves.
      if (changesChildren && !own && length === parentLength && entry.mode === 'persistent-recursive') parent = entry;
    }
    if (parent === undefined) return;
    const ofParent: WatchEvent = { type: 'children', path: parent.path };
    this.fire('child', ofParent);
    notify(parent, ofParent, true);
  }

  private addOneShot(kind: OneShotKind, path: string, listener: OneShotListener): void {
    const listeners = this.oneShots[kind].get(path);
    if (listeners === undefined) this.oneShots[kind].set(path, new Set([listener]));
    else listeners.add(listener);
  }

  private endAsking(path: string): void {
    const left = (this.asking.get(path) ?? 1) - 1;
    if (left === 0) this.asking.delete(path);
    else this.asking.set(path, left);
  }

  private waitsFor(kind: WatchKind, path: string): boolean {
    return KINDS_OF[kind].some((one) => this.oneShots[one].has(path));
  }

  /** Returns the watch at the path or its ancestor that has the length of this level. */
  private find(level: Level, path: string): Entry | undefined {
    const entry = this.entries.get(path.slice(0, level.length));
    if (entry !== undefined) level.recent = entry;
    return entry;
  }

  private fireOneShots(event: WatchEvent): void {
    const { type } = event;
    if (type !== 'children') {
      this.fire('data', event);
      this.fire('exist', event);
    }
    if (type === 'children' || type === 'deleted') this.fire('child', event);
  }

  private fire(kind: OneShotKind, event: WatchEvent): void {
    const byPath = this.oneShots[kind];
    const listeners = byPath.get(event.path);
    if (listeners === undefined) return;
    byPath.delete(event.path);
    for (const listener of listeners) callListener(listener, event);
    this.removeIfUnused(event.path);
  }

  private close(registration: Registration): void {
    if (!registration.open) return;
    registration.open = false;
    const { path } = registration.watch;
    const entry = this.entries.get(path);
    if (entry !== undefined) removeRegistration(entry, registration);
    this.removeIfUnused(path);
  }

  private removeIfUnused(path: string): void {
    const entry = this.entries.get(path);
    if (entry === undefined || entry.pins > 0 || entry.registrations.length > 0) return;
    // Removing it at the server would also remove the one-shot watches at its path.
    if (this.waitsFor('any', path) || this.asking.has(path)) return;
    this.removeEntry(path);
    if (this.connected) this.port.removeWatches(path);
  }

  private removeEntry(path: string): void {
    this.entries.delete(path);
    this.levels = undefined;
  }
}

interface Batch {
  readonly paths: { readonly [K in keyof WatchPaths]: string[] };
  readonly registrations: Registration[];
}

function emptyBatch(): Batch {
  return { paths: { data: [], exist: [], child: [], persistent: [], recursive: [] }, registrations: [] };
}

function removeRegistration(entry: Entry, registration: Registration): void {
  entry.registrations = entry.registrations.filter((each) => each !== registration);
}

/** Passes an event to the listeners of a path; `own` is true for an event of that path, not of a descendant. */
function notify({ registrations }: Entry, event: WatchEvent, own: boolean): void {
  for (let index = 0; index < registrations.length; index += 1) {
    const registration = registrations[index];
    if (registration?.open !== true) continue;
    const concerned = registration.watch.mode === 'persistent' ? own : event.type !== 'children';
    if (!concerned) continue;
    try {
      registration.listener.onEvent(event);
    } catch (error) {
      throwLater(error);
    }
  }
}

function levelsOf(paths: Iterable<string>): Level[] {
  const lengths = new Set(Array.from(paths, ({ length }) => length));
  return Array.from(lengths, (length) => ({ length, recent: undefined })).sort((a, b) => b.length - a.length);
}
