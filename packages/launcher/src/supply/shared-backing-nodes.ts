/**
 * The backing nodes of an owner. All launchers with its provider share them: the durable lock of a backing node belongs
 * to the owner, and each write applies only to the version of the record that it was computed from.
 */

import {
  backingOwnersOf,
  backOffMs,
  reasonOf,
  sleep,
  untilAborted,
  type BackingNode,
  type BackingNodes,
  type BackingPlan,
  type Call,
  type JsonValue,
  type Node,
  type NodeRequest,
  type NodeRequestData,
} from '@nodepool/core';
import { LostOwnershipError, requestPath, type Change, type NodeEntry, type RequestEntry } from '@nodepool/store';
import { isZooKeeperError, type CallOptions, type HeldLock } from '@nodepool/zookeeper';
import { unixSeconds, type LauncherContext } from '../context.js';

/** Priority of backing requests, as that of the Python Nodepool. */
const PRIORITY = 100;

/**
 * Limits of the requests that one transaction creates and removes, because transactions are limited in size. The change
 * of the records causes the next plan.
 */
const MAX_CHANGED = 200;

/** Number of failed reads of a lock after which other work does not wait for it any more. */
const MAX_AWAITED_READS = 3;

const NO_CHANGE: BackingPlan = { create: [], remove: [] };

export class SharedBackingNodes implements BackingNodes {
  /** Locks of the owner by node. */
  private readonly locks = new Map<string, HeldLock>();
  /** Locks that are being read, by node. */
  private readonly reads = new Map<string, Promise<void>>();
  /** Reasons by node why its lock could not be read so far. It is retried, and other work does not wait for it. */
  private readonly unreadable = new Map<string, string>();
  private readonly own = new Map<string, RequestEntry>();
  private cachedUsers: readonly Node[] | undefined;
  /** Cached results of `capacityOf` by label, until the next change of a pool. */
  private readonly capacities = new Map<string, number>();
  private readonly listeners = new Set<() => void>();
  private readonly unsubscribe: readonly (() => void)[];
  private readonly closing = new AbortController();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: string,
    private readonly owner: string,
  ) {
    const { store } = context;
    this.unsubscribe = [
      store.nodes.onChange((change) => this.nodeChanged(change)),
      store.requests.onChange(({ id, before, after }) => this.requestChanged(id, before, after)),
      store.components.onChange(() => {
        this.capacities.clear();
        this.changed();
      }),
      store.onComplete((complete) => {
        if (complete) this.readAll();
      }),
    ];
    this.readAll();
  }

  held(): readonly BackingNode[] {
    const { nodes } = this.context.store;
    const held: BackingNode[] = [];
    for (const id of new Set([...this.locks.keys(), ...this.unreadable.keys()])) {
      const entry = nodes.get(id);
      if (entry === undefined) continue;
      const { node, version } = entry;
      held.push({ node, version, lost: node.interruption?.reason, unverified: this.unreadable.get(id) });
    }
    return held.sort((a, b) => (a.node.id < b.node.id ? -1 : 1));
  }

  requests(): readonly NodeRequest[] {
    return [...this.own.values()].map(({ request }) => request).sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  users(): readonly Node[] {
    this.cachedUsers ??= Array.from(this.context.store.nodes.ofProvider(this.provider), ({ node }) => node);
    return this.cachedUsers;
  }

  isServed(label: string): boolean {
    for (const { provider_name: name, supported_labels: labels } of this.context.store.components.pools()) {
      if (name === this.provider && labels.includes(label)) return true;
    }
    return false;
  }

  capacityOf(label: string): number {
    const known = this.capacities.get(label);
    if (known !== undefined) return known;
    const { components } = this.context.store;
    const absent = components.returningPools().map(({ pool }) => pool);
    // Launchers with the same pool share its nodes.
    const limits = new Map<string, number>();
    for (const { provider_name: provider, name, supported_labels: labels, max_servers: limit = Infinity } of [
      ...components.pools(),
      ...absent,
    ]) {
      const place = JSON.stringify([provider, name]);
      if (labels.includes(label)) limits.set(place, Math.max(limits.get(place) ?? 0, limit));
    }
    const capacity = limits.size === 0 ? Infinity : [...limits.values()].reduce((sum, limit) => sum + limit);
    // The time for which an absent pool may return ends without a change.
    if (absent.length === 0) this.capacities.set(label, capacity);
    return capacity;
  }

  async refresh(call: Call): Promise<void> {
    await this.context.store.caughtUp(this.limits(call));
    while (this.reads.size > 0) await untilAborted(Promise.all(this.reads.values()), call.signal);
  }

  async plan(decide: () => BackingPlan, call: Call): Promise<void> {
    const { store, log, decisions } = this.context;
    let created: BackingPlan['create'] = [];
    const ids = await store.requests.changeSet(
      this.owner,
      () => {
        // A node whose lock is being read may be held; the end of the read causes another plan.
        const { create, remove } = this.reads.size > 0 ? NO_CHANGE : decide();
        created = create.slice(0, MAX_CHANGED);
        return {
          create: created.map(({ label, data }) => this.request(label, data)),
          remove: remove.slice(0, MAX_CHANGED).flatMap((id) => this.own.get(id) ?? []),
        };
      },
      { priority: PRIORITY, ...this.limits(call) },
    );
    for (const [index, id] of ids.entries()) {
      const label = created[index]?.label;
      log.info('Requested a backing node', { node_request_id: id, label, requestor: this.owner });
      decisions.record('request', id, this.provider, 'requests a backing node', `nodes of the provider wait for slots`);
    }
  }

  async adopt(request: NodeRequest, userData: (node: Node) => JsonValue, call: Call): Promise<boolean> {
    const { store } = this.context;
    const limits = this.limits(call);
    const [id = ''] = request.nodes;
    const entry = await store.nodes.read(id, limits);
    if (entry?.node.state !== 'ready' || entry.node.allocated_to !== request.id) {
      await this.removeRequest(request, limits);
      return false;
    }
    const change = { state: 'in-use', user_data: userData(entry.node) } as const;
    if (entry.locked) return this.finishAdoption(request, entry, change, limits);
    const known = this.own.get(request.id);
    if (known === undefined) return false;
    const after = [{ type: 'delete', path: requestPath(request.id), version: known.version } as const];
    try {
      const handles = await store.nodes.tryLockAll([{ id, from: entry, change }], {
        owner: this.owner,
        after,
        ...limits,
      });
      const [handle] = handles ?? [];
      if (handle === undefined) return false;
      this.locks.set(id, handle.lock);
      this.changed();
      return true;
    } catch (error) {
      // Another launcher has adopted the node, or the request was changed or removed.
      if (isZooKeeperError(error, 'no-node') || isZooKeeperError(error, 'bad-version')) return false;
      throw error;
    }
  }

  async update(node: BackingNode, userData: JsonValue, call: Call): Promise<boolean> {
    return this.write(node, (entry, lock) =>
      this.context.store.nodes.shared(entry, lock).update({ user_data: userData }, this.limits(call)),
    );
  }

  async release(node: BackingNode, call: Call): Promise<boolean> {
    const isReleased = await this.write(node, (entry, lock) =>
      this.context.store.nodes
        .shared(entry, lock)
        // Any other state says what an operator, or another implementation, wants of the node.
        .unlock(entry.node.state === 'in-use' ? { state: 'used' } : {}, this.limits(call)),
    );
    if (isReleased) this.forget(node.node.id);
    return isReleased;
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    this.closing.abort(new Error('the provider was stopped'));
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.listeners.clear();
  }

  /** Completes an adoption that another implementation has begun. Resolves with false if it is locked otherwise. */
  private async finishAdoption(
    request: NodeRequest,
    { id, version }: NodeEntry,
    change: Partial<Node>,
    limits: CallOptions,
  ): Promise<boolean> {
    const { store } = this.context;
    const handle = await store.nodes.adopt(id, this.owner, { takeOver: false, ...limits });
    if (handle?.record.version !== version) return false;
    try {
      await handle.update(change, limits);
    } catch (error) {
      if (error instanceof LostOwnershipError) return false;
      throw error;
    }
    await this.removeRequest(request, limits);
    this.locks.set(id, handle.lock);
    this.changed();
    return true;
  }

  private async removeRequest({ id }: NodeRequest, limits: CallOptions): Promise<void> {
    const plan = (): { create: []; remove: readonly RequestEntry[] } => {
      const entry = this.own.get(id);
      return { create: [], remove: entry?.request.state === 'fulfilled' ? [entry] : [] };
    };
    await this.context.store.requests.changeSet(this.owner, plan, { priority: PRIORITY, ...limits });
  }

  /** Writes to a held node in its version. Resolves with false if it has another one, or is not held any more. */
  private async write(
    { node: { id }, version }: BackingNode,
    write: (entry: NodeEntry, lock: HeldLock) => Promise<void>,
  ): Promise<boolean> {
    const entry = this.context.store.nodes.get(id);
    const lock = this.locks.get(id);
    if (entry === undefined || lock === undefined || entry.version !== version) return false;
    try {
      await write(entry, lock);
      return true;
    } catch (error) {
      if (!(error instanceof LostOwnershipError)) throw error;
      // The lock may belong to another program now.
      this.verify(id);
      return false;
    }
  }

  private request(label: string, data: JsonValue): NodeRequestData {
    const now = unixSeconds(this.context);
    return {
      state: 'requested',
      state_time: now,
      node_types: [label],
      nodes: [],
      declined_by: [],
      decline_reasons: {},
      reuse: true,
      requestor: this.owner,
      requestor_data: data,
      provider: null,
      relative_priority: 0,
      event_id: this.context.random.uuidHex(),
      created_time: now,
      tenant_name: null,
    };
  }

  private readAll(): void {
    const { store } = this.context;
    this.cachedUsers = undefined;
    this.own.clear();
    for (const entry of store.requests.all()) if (entry.request.requestor === this.owner) this.own.set(entry.id, entry);
    for (const entry of store.nodes.all()) this.consider(entry);
    this.changed();
  }

  private nodeChanged({ id, before, after }: Change<NodeEntry>): void {
    const isUser = [before, after].some((entry) => entry?.node.provider === this.provider);
    if (isUser) this.cachedUsers = undefined;
    const wasHeld = this.locks.has(id) || this.unreadable.has(id);
    if (after === undefined) this.forgetLock(id);
    else this.consider(after);
    const request = after?.node.allocated_to ?? null;
    const isForUs = request !== null && this.own.has(request);
    if (isUser || isForUs || wasHeld) this.changed();
  }

  private requestChanged(id: string, before: RequestEntry | undefined, after: RequestEntry | undefined): void {
    if ((after ?? before)?.request.requestor !== this.owner) return;
    if (after === undefined) this.own.delete(id);
    else this.own.set(id, after);
    this.changed();
  }

  private consider(entry: NodeEntry): void {
    const { id } = entry;
    if (!this.isClaimed(entry)) this.forgetLock(id);
    else if (!this.locks.has(id)) this.verify(id);
  }

  private verify(id: string): void {
    this.locks.delete(id);
    if (this.reads.has(id) || this.unreadable.has(id) || this.closing.signal.aborted) return;
    const read = this.readLock(id).finally(() => {
      this.reads.delete(id);
      this.changed();
    });
    this.reads.set(id, read);
    this.changed();
    this.context.tasks.run(`read the lock of backing node ${id}`, () => read);
  }

  /** Reads the lock, several times if that fails. Continues without the caller if it fails every time. */
  private async readLock(id: string): Promise<void> {
    const { log, tasks } = this.context;
    for (let failures = 0; failures < MAX_AWAITED_READS; failures += 1) {
      if (failures > 0) await this.pause(failures);
      const failure = await this.tryRead(id);
      if (failure === undefined) return;
      if (failures + 1 < MAX_AWAITED_READS) continue;
      this.unreadable.set(id, `its lock cannot be read: ${failure}`);
      const fields = { node_id: id, owner: this.owner, reason: failure };
      log.warn('The lock of a backing node cannot be read; it gets no further nodes until it can', fields);
      tasks.run(`read the lock of backing node ${id}`, () => this.readLater(id));
    }
  }

  /** Reads the lock until that succeeds, or the record does not claim any more that the owner holds it. */
  private async readLater(id: string): Promise<void> {
    const { log } = this.context;
    for (let failures = MAX_AWAITED_READS; this.unreadable.has(id); failures += 1) {
      await this.pause(failures);
      const failure = await this.tryRead(id);
      if (this.closing.signal.aborted) return;
      if (failure !== undefined) continue;
      this.unreadable.delete(id);
      log.info('The lock of a backing node can be read again', { node_id: id, is_held: this.locks.has(id) });
      this.changed();
    }
  }

  /** Reads the lock once. Resolves with the reason if that failed. */
  private async tryRead(id: string): Promise<string | undefined> {
    const { store, log } = this.context;
    const { signal } = this.closing;
    if (signal.aborted || !this.isClaimed(store.nodes.get(id))) return undefined;
    try {
      const handle = await store.nodes.adopt(id, this.owner, { takeOver: false, signal });
      if (handle !== undefined && this.isClaimed(store.nodes.get(id))) this.locks.set(id, handle.lock);
      return undefined;
    } catch (error) {
      log.debug('The lock of a backing node could not be read; retrying', { node_id: id, error });
      return reasonOf(error);
    }
  }

  private async pause(failures: number): Promise<void> {
    const { clock, random } = this.context;
    await sleep(clock, backOffMs(failures, undefined, random), this.closing.signal).catch(() => undefined);
  }

  /** Returns true if the record of the node names the owner, which proves nothing: the lock does. */
  private isClaimed(entry: NodeEntry | undefined): boolean {
    if (entry?.locked !== true) return false;
    const { node } = entry;
    const isNamed = node.requestor === this.owner || node.user_data !== null;
    return isNamed && backingOwnersOf(node).includes(this.owner);
  }

  private forgetLock(id: string): void {
    this.locks.delete(id);
    this.unreadable.delete(id);
  }

  private forget(id: string): void {
    this.forgetLock(id);
    this.changed();
  }

  private limits({ signal, deadline }: Call): CallOptions {
    return { signal, timeoutMs: Math.max(0, deadline - this.context.clock.monotonic()) };
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}
