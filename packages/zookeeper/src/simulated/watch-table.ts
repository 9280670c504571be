/**
 * The watches of the simulated server, as in ZooKeeper 3.8 (`WatchManager`, `WatcherModeManager`): one table for data
 * and one for children. A connection has one mode per path and table; a new mode replaces the old one.
 */

import { Permission, type Acl, type WatchEvent, type WatchKind } from '../api.js';
import { parentPath } from '../client/paths.js';
import { allows, type ServerIdentity } from './access.js';
import type { Change } from './messages.js';

/** The receiver of events: a connection. */
export interface EventSink {
  readonly identities: readonly ServerIdentity[];
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

  /** Returns false if there was no watch. */
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
   * Sends the event to each watching connection once, but not to those of `except`. Connections without the read
   * permission get no event, but lose their one-shot watches (ZOOKEEPER-4799). Returns all watching connections.
   */
  trigger(event: WatchEvent, acl: readonly Acl[], except?: ReadonlySet<EventSink>): ReadonlySet<EventSink> {
    const watching = new Set<EventSink>();
    for (const [sink, mode] of this.byPath.get(event.path) ?? []) {
      if (mode === 'recursive' && event.type === 'children') continue;
      watching.add(sink);
      if (mode === 'once') this.remove(event.path, sink);
    }
    if (this.recursive > 0 && event.type !== 'children') this.addRecursive(parentPath(event.path), watching);
    for (const sink of watching) {
      if (except?.has(sink) !== true && allows(acl, Permission.read, sink.identities)) sink.sendEvent(event);
    }
    return watching;
  }

  private addRecursive(from: string | undefined, watching: Set<EventSink>): void {
    for (let path = from; path !== undefined; path = parentPath(path)) {
      const sinks = this.byPath.get(path);
      if (sinks === undefined) continue;
      for (const [sink, mode] of sinks) if (mode === 'recursive') watching.add(sink);
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

  /** Adds a persistent watch, which is in both tables. */
  add(path: string, sink: EventSink, recursive: boolean): void {
    const mode = recursive ? 'recursive' : 'persistent';
    this.data.add(path, sink, mode);
    this.children.add(path, sink, mode);
  }

  /** Removes the connection's watches at a path. Returns false if there were none. */
  remove(path: string, sink: EventSink, kind: WatchKind): boolean {
    const data = kind !== 'children' && this.data.remove(path, sink);
    const children = kind !== 'data' && this.children.remove(path, sink);
    return data || children;
  }

  removeSink(sink: EventSink): void {
    this.data.removeSink(sink);
    this.children.removeSink(sink);
  }

  /** Sends the events of a change in the order of a real server: the znode's first, then its parent's. */
  notify(change: Change): void {
    const { type, path, acl, parentAcl } = change;
    const event: WatchEvent = { type, path };
    const watching = this.data.trigger(event, acl);
    if (type === 'changed') return;
    if (type === 'deleted') this.children.trigger(event, acl, watching);
    const parent = parentPath(path);
    if (parent !== undefined) this.children.trigger({ type: 'children', path: parent }, parentAcl);
  }
}
