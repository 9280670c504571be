/**
 * The watches of a client: those that are told once, and persistent ones. Paths are the client's.
 *
 * A server of version 3.8 knows one kind of watch per path and session: a one-shot watch set at the path of a persistent
 * one would replace it (ZOOKEEPER-4466). So where a persistent watch is, one-shot watches are not asked for but served
 * from its events, and so are two kinds of persistent watches at one path.
 */

import type { PersistentWatch, WatchEvent, WatchKind, WatchListener } from '../api.js';
import type { ZooKeeperError } from '../errors.js';
import { callListener } from './emitter.js';
import type { WatchPaths } from './operations.js';
import { parentPath } from './paths.js';

export type OneShotListener = (event: WatchEvent) => void;

/** What a one-shot watch waits for: `data` and `child` of a znode that is there, `exist` of one that is not. */
export type OneShotKind = 'data' | 'exist' | 'child';

/** How the registry asks the server. Answers come back through `wasSet` and `refused`. */
export interface WatchPort {
  addWatch(path: string, mode: PersistentWatch['mode'], registration: Registration): void;
  removeWatches(path: string): void;
  /** Sets one that is told once, without reading anything. */
  setOneShot(kind: OneShotKind, path: string): void;
  warn(error: ZooKeeperError): void;
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
  /** It is not set: the server refused it. */
  refused: boolean;
}

/** A read that leaves a one-shot watch, on its way. */
export interface WatchingRead {
  /** Whether the server must be asked for a watch; otherwise a persistent one serves. */
  readonly askServer: boolean;
  /** It was answered, and leaves the watch: or not (undefined), because it failed. Call it once. */
  done(kind: OneShotKind | undefined): void;
}

const KINDS_OF: Readonly<Record<WatchKind, readonly OneShotKind[]>> = {
  data: ['data', 'exist'],
  children: ['child'],
  any: ['data', 'exist', 'child'],
};

/** Servers limit the length of a request; so does ours when watches are set again. */
const BATCH_BYTES = 128 * 1024;

export class WatchRegistry {
  private readonly oneShots: Record<OneShotKind, Map<string, Set<OneShotListener>>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  private readonly entries = new Map<string, Entry>();
  /** Reads on their way that ask the server for a watch, by path. */
  private readonly asking = new Map<string, number>();
  private connected = false;

  constructor(private readonly port: WatchPort) {}

  /** A read begins that will leave a one-shot watch of `listener`. */
  watchingRead(path: string, listener: OneShotListener): WatchingRead {
    const entry = this.entries.get(path);
    if (entry === undefined) {
      this.asking.set(path, (this.asking.get(path) ?? 0) + 1);
      return {
        askServer: true,
        done: (kind) => {
          this.noLongerAsking(path);
          if (kind !== undefined) this.addOneShot(kind, path, listener);
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
   * Removes listeners that wait to be told once, and tells them so. What must be removed at the server then; undefined
   * if nothing. `none`: there was no such listener.
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
    // What others rely on, or are about to, stays at the server: an event without a listener harms nobody.
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
      entry = { mode, registrations: new Set(), pins: 0, refused: false };
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

  /** The server does not set these: they are closed, and their owners told. */
  refused(registrations: readonly Registration[], error: ZooKeeperError): void {
    for (const registration of registrations) {
      if (!registration.open) continue;
      registration.open = false;
      const { path } = registration.watch;
      const entry = this.entries.get(path);
      entry?.registrations.delete(registration);
      if (entry?.registrations.size === 0) {
        entry.refused = true;
        this.entries.delete(path);
      }
      const { listener } = registration;
      if (listener.onError === undefined) this.port.warn(error);
      else callListener(() => listener.onError?.(error));
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

  private addOneShot(kind: OneShotKind, path: string, listener: OneShotListener): void {
    const listeners = this.oneShots[kind].get(path);
    if (listeners === undefined) this.oneShots[kind].set(path, new Set([listener]));
    else listeners.add(listener);
  }

  private noLongerAsking(path: string): void {
    const left = (this.asking.get(path) ?? 1) - 1;
    if (left === 0) this.asking.delete(path);
    else this.asking.set(path, left);
  }

  private waitsFor(kind: WatchKind, path: string): boolean {
    return KINDS_OF[kind].some((one) => this.oneShots[one].has(path));
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
    if (this.waitsFor('any', path)) return;
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
