/**
 * The watches of the simulated server. As in ZooKeeper 3.8 (`WatchManager`, `WatcherModeManager`): one table for data
 * and one for children, in which a connection has one mode per path, so that the latest mode that was asked for replaces
 * the one before.
 */

import { Permission, type Acl, type WatchEvent, type WatchKind } from '../api.js';
import { parentPath } from '../client/paths.js';
import { allows, type Identity } from './access.js';
import type { Change } from './messages.js';

/** Whoever gets the events: a connection. */
export interface EventSink {
  readonly identities: readonly Identity[];
  sendEvent(event: WatchEvent): void;
}

export type WatchMode = 'once' | 'persistent' | 'recursive';

class WatchTable {
  private readonly byPath = new Map<string, Map<EventSink, WatchMode>>();
  private recursive = 0;

  add(path: string, sink: EventSink, mode: WatchMode): void {
    let sinks = this.byPath.get(path);
    if (sinks === undefined) this.byPath.set(path, (sinks = new Map<EventSink, WatchMode>()));
    if (sinks.get(sink) === 'recursive') this.recursive--;
    if (mode === 'recursive') this.recursive++;
    sinks.set(sink, mode);
  }

  /** False: there was none. */
  remove(path: string, sink: EventSink): boolean {
    const sinks = this.byPath.get(path);
    const mode = sinks?.get(sink);
    if (sinks === undefined || mode === undefined) return false;
    if (mode === 'recursive') this.recursive--;
    sinks.delete(sink);
    if (sinks.size === 0) this.byPath.delete(path);
    return true;
  }

  removeSink(sink: EventSink): void {
    for (const path of [...this.byPath.keys()]) this.remove(path, sink);
  }

  /**
   * Sends the event to each connection at most once, and to none of `except`. Returns whose it was. Those who may not read
   * the znode are told nothing, but their one-shot watches are used up (ZOOKEEPER-4799).
   */
  trigger(event: WatchEvent, acl: readonly Acl[], except?: ReadonlySet<EventSink>): ReadonlySet<EventSink> {
    const told = new Set<EventSink>();
    for (const [sink, mode] of this.byPath.get(event.path) ?? []) {
      if (mode === 'recursive' && event.type === 'children') continue;
      told.add(sink);
      if (mode === 'once') this.remove(event.path, sink);
    }
    if (this.recursive > 0 && event.type !== 'children') this.addRecursive(parentPath(event.path), told);
    for (const sink of told) {
      if (except?.has(sink) !== true && allows(acl, Permission.read, sink.identities)) sink.sendEvent(event);
    }
    return told;
  }

  private addRecursive(from: string | undefined, told: Set<EventSink>): void {
    for (let path = from; path !== undefined; path = parentPath(path)) {
      const sinks = this.byPath.get(path);
      if (sinks === undefined) continue;
      for (const [sink, mode] of sinks) if (mode === 'recursive') told.add(sink);
    }
  }
}

export class ServerWatches {
  private readonly data = new WatchTable();
  private readonly children = new WatchTable();

  watchData(path: string, sink: EventSink): void {
    this.data.add(path, sink, 'once');
  }

  watchChildren(path: string, sink: EventSink): void {
    this.children.add(path, sink, 'once');
  }

  /** A persistent watch is in both tables. */
  add(path: string, sink: EventSink, recursive: boolean): void {
    const mode = recursive ? 'recursive' : 'persistent';
    this.data.add(path, sink, mode);
    this.children.add(path, sink, mode);
  }

  /** Removes what the connection watches there. False: nothing. */
  remove(path: string, sink: EventSink, kind: WatchKind): boolean {
    const data = kind !== 'children' && this.data.remove(path, sink);
    const children = kind !== 'data' && this.children.remove(path, sink);
    return data || children;
  }

  removeSink(sink: EventSink): void {
    this.data.removeSink(sink);
    this.children.removeSink(sink);
  }

  /** Tells of a change in the order of the real server: the znode first, then its parent. */
  tell(change: Change): void {
    const { type, path, acl, parentAcl } = change;
    const event: WatchEvent = { type, path };
    const told = this.data.trigger(event, acl);
    if (type === 'changed') return;
    if (type === 'deleted') this.children.trigger(event, acl, told);
    const parent = parentPath(path);
    if (parent !== undefined) this.children.trigger({ type: 'children', path: parent }, parentAcl);
  }
}
