/** Objects of the cluster by kind, with versions and the history that watches continue from. */

import { randomUUID } from 'node:crypto';
import type { Clock, JsonObject } from '@nodepool/core';
import type { Kind } from './kinds.js';

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export type StoredObject = JsonObject & { readonly metadata: Metadata & JsonObject };

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly kind: Kind;
  readonly object: StoredObject;
  /** The object before the change. */
  readonly before: StoredObject | undefined;
  readonly version: number;
}

/** Version of a fresh cluster, so that low versions are too old. */
const FIRST_VERSION = 1000;

export class Store {
  private readonly objects = new Map<Kind, Map<string, StoredObject>>();
  private readonly listeners = new Set<(change: Change) => void>();
  private history: Change[] = [];
  private forgotten = FIRST_VERSION;
  private last = FIRST_VERSION;

  constructor(
    private readonly clock: Clock,
    private readonly maxHistory: () => number,
  ) {}

  get version(): number {
    return this.last;
  }

  list(kind: Kind, namespace?: string): StoredObject[] {
    const all = [...(this.objects.get(kind)?.values() ?? [])];
    return namespace === undefined ? all : all.filter(({ metadata }) => metadata.namespace === namespace);
  }

  get(kind: Kind, name: string, namespace?: string): StoredObject | undefined {
    return this.objects.get(kind)?.get(keyOf(name, namespace));
  }

  add(kind: Kind, object: JsonObject, name: string, namespace: string | undefined): StoredObject {
    const metadata = {
      ...(object['metadata'] as JsonObject | undefined),
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: randomUUID(),
      creationTimestamp: this.timestamp(),
    };
    return this.write(kind, 'ADDED', { ...object, metadata }, undefined);
  }

  /** Replaces an object if it still exists. */
  update(kind: Kind, before: StoredObject, change: JsonObject): StoredObject | undefined {
    const { name, namespace, uid } = before.metadata;
    const current = this.get(kind, name, namespace);
    if (current?.metadata.uid !== uid) return undefined;
    return this.write(kind, 'MODIFIED', { ...current, ...change }, current);
  }

  /** Marks an object as being deleted. */
  mark(kind: Kind, object: StoredObject, change: JsonObject = {}): StoredObject | undefined {
    const metadata = { ...object.metadata, deletionTimestamp: this.timestamp() };
    return this.update(kind, object, { ...change, metadata });
  }

  remove(kind: Kind, object: StoredObject): void {
    const { name, namespace, uid } = object.metadata;
    const current = this.get(kind, name, namespace);
    if (current?.metadata.uid !== uid) return;
    this.objects.get(kind)?.delete(keyOf(name, namespace));
    this.record('DELETED', kind, this.versioned(current), current);
  }

  /** Calls `listener` for each change since a version and from now on. Returns undefined if the version is too old. */
  follow(since: number | undefined, listener: (change: Change) => void): (() => void) | undefined {
    if (since !== undefined && since < this.forgotten) return undefined;
    for (const change of this.history) if (since !== undefined && change.version > since) listener(change);
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Forgets all past changes, as a compaction of the database does. */
  compact(): void {
    this.history = [];
    this.forgotten = this.last;
  }

  private write(
    kind: Kind,
    type: 'ADDED' | 'MODIFIED',
    object: JsonObject,
    before: StoredObject | undefined,
  ): StoredObject {
    const stored = this.versioned(object as StoredObject);
    const { name, namespace } = stored.metadata;
    const objects = this.objects.get(kind) ?? new Map<string, StoredObject>();
    this.objects.set(kind, objects.set(keyOf(name, namespace), stored));
    this.record(type, kind, stored, before);
    return stored;
  }

  private versioned(object: StoredObject): StoredObject {
    this.last += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.last) } };
  }

  private record(type: Change['type'], kind: Kind, object: StoredObject, before: StoredObject | undefined): void {
    const change: Change = { type, kind, object, before, version: this.last };
    this.history.push(change);
    const excess = this.history.length - this.maxHistory();
    if (excess > 0) {
      this.forgotten = this.history[excess - 1]?.version ?? this.forgotten;
      this.history = this.history.slice(excess);
    }
    for (const listener of [...this.listeners]) listener(change);
  }

  private timestamp(): string {
    return new Date(this.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  }
}

function keyOf(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
