/** Simulated backing nodes, in place of the records that launchers share. */

import {
  DriverError,
  sleep,
  type BackingDemand,
  type BackingNode,
  type BackingNodes,
  type Clock,
  type JsonValue,
  type LaunchedInstance,
  type Node,
  type NodeRequest,
} from '@nodepool/core';
import { nodeWith, requestWith } from '@nodepool/core/testing';

/** Time that a write takes, milliseconds. */
const WRITE_MS = 5;

interface BackingRecord {
  node: Node;
  version: number;
  owner: string | undefined;
  lost: string | undefined;
  unverified?: string | undefined;
  /** True if no write succeeds. */
  isBroken?: boolean | undefined;
}

/**
 * The records of nodes and requests, which all processes of a test share. A request is fulfilled after `bootMs` with a
 * new node. A write changes a record only in the version that the writer has read.
 */
export class SimulatedBackingNodes {
  bootMs = 1000;
  private readonly records = new Map<string, BackingRecord>();
  private readonly requests = new Map<string, NodeRequest & { readonly owner: string }>();
  private readonly users = new Map<string, Node>();
  private readonly listeners = new Set<() => void>();
  /** Labels of other launchers with the same provider. */
  readonly served = new Set<string>();
  /** Limits of the nodes with a label. */
  readonly capacities = new Map<string, number>();
  /** True while no read or write of records succeeds. */
  isDown = false;
  /** Ids of nodes that cannot be taken over. */
  readonly unadoptable = new Set<string>();
  private sequence = 0;
  private version = 0;
  private failures = 0;
  /** All requests ever made. */
  readonly requested: BackingDemand[] = [];
  /** Ids of released nodes, in order, each with the data at its release. */
  readonly released: { readonly id: string; readonly userData: JsonValue }[] = [];

  constructor(private readonly clock: Clock) {}

  /** Makes the next requests fail. */
  failNext(count: number): void {
    this.failures = count;
  }

  /** Makes a backing node lost, as if its cloud took it away. */
  lose(id: string, reason = 'its cloud takes it away'): void {
    const record = this.records.get(id);
    if (record !== undefined) record.lost = reason;
    this.changed();
  }

  /** Writes other `user_data`, as another program does. */
  overwrite(id: string, userData: JsonValue): void {
    const record = this.records.get(id);
    if (record !== undefined) this.write(record, { ...record.node, user_data: userData });
    this.changed();
  }

  /** Makes every write to a backing node fail, or succeed again. */
  setBroken(id: string, isBroken: boolean): void {
    const record = this.records.get(id);
    if (record !== undefined) record.isBroken = isBroken;
  }

  /** Makes the lock of a backing node unreadable, with the reason; or readable again. */
  setUnverified(id: string, reason: string | undefined): void {
    const record = this.records.get(id);
    if (record !== undefined) record.unverified = reason;
    this.changed();
  }

  /** Removes the record of a backing node, as if an operator deleted it. */
  remove(id: string): void {
    this.records.delete(id);
    this.changed();
  }

  /** Returns the held backing nodes. */
  nodes(): readonly Node[] {
    return [...this.records.values()].flatMap(({ node, owner }) => (owner === undefined ? [] : [node]));
  }

  /** Adds a node that another program holds for the owner. */
  add(owner: string, facts: Partial<Node>): Node {
    const id = this.nextId();
    const node = nodeWith({ ...this.facts(id), state: 'in-use', ...facts, id });
    this.records.set(id, { node, version: 1, owner, lost: undefined });
    this.changed();
    return node;
  }

  /** Records that a launch of a node has begun. */
  launching(facts: Partial<Node>): void {
    const node = nodeWith({ state: 'building', ...facts });
    this.users.set(node.id, node);
    this.changed();
  }

  /** Records that a node is ready. */
  launched(id: string, { externalId, driverData, slot }: LaunchedInstance): void {
    const node = this.users.get(id);
    if (node === undefined) return;
    this.users.set(id, {
      ...node,
      state: 'ready',
      external_id: externalId,
      driver_data: driverData ?? null,
      slot: slot ?? null,
    });
    this.changed();
  }

  /** Records that a node was deleted. */
  deleted(id: string): void {
    this.users.delete(id);
    this.changed();
  }

  /** Opens the records as a launcher does for one provider. */
  open(owner: string, provider: string): BackingNodes {
    return {
      held: () => this.held(owner),
      requests: () => [...this.requests.values()].filter((request) => request.owner === owner),
      users: () => [...this.users.values()].filter((node) => node.provider === provider),
      isServed: (label) => this.served.has(label),
      capacityOf: (label) => this.capacities.get(label) ?? Infinity,
      refresh: ({ signal }) => this.exchange(signal),
      plan: async (decide, { signal }) => {
        await this.exchange(signal);
        const { create, remove } = decide();
        for (const id of remove) this.requests.delete(id);
        for (const demand of create) this.request(owner, demand);
        this.changed();
      },
      adopt: async (request, userData, { signal }) => {
        await this.exchange(signal);
        if (this.unadoptable.has(request.nodes[0] ?? '')) throw new DriverError('unexpected', 'the node is unreadable');
        if (!this.requests.delete(request.id)) return false;
        const record = this.records.get(request.nodes[0] ?? '');
        if (record === undefined || record.owner !== undefined) return false;
        const node: Node = { ...record.node, state: 'in-use', state_time: this.now };
        this.write(record, { ...node, user_data: userData(node) });
        record.owner = owner;
        this.changed();
        return true;
      },
      update: (node, data, { signal }) => this.update(node, signal, (record) => ({ ...record, user_data: data })),
      release: async (node, { signal }) => {
        const isReleased = await this.update(node, signal, (record) => ({ ...record, state: 'used' }));
        if (!isReleased) return false;
        this.records.delete(node.node.id);
        this.released.push({ id: node.node.id, userData: node.node.user_data });
        this.changed();
        return true;
      },
      onChange: (listener) => {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
      },
    };
  }

  private async exchange(signal: AbortSignal): Promise<void> {
    await sleep(this.clock, WRITE_MS, signal);
    if (this.isDown) throw new DriverError('transient', 'the records cannot be reached');
  }

  private get now(): number {
    return this.clock.now() / 1000;
  }

  private nextId(): string {
    this.sequence += 1;
    return `9${String(this.sequence).padStart(9, '0')}`;
  }

  private held(owner: string): readonly BackingNode[] {
    return [...this.records.values()].flatMap(({ node, version, owner: holder, lost, unverified }) =>
      holder === owner ? [{ node, version, lost, unverified }] : [],
    );
  }

  private facts(id: string): Partial<Node> {
    return {
      state: 'ready',
      state_time: this.now,
      created_time: this.now,
      interface_ip: `backing-${id}.test`,
      public_ipv4: '192.0.2.1',
      cloud: 'backing-cloud',
      region: 'r1',
      az: 'z1',
      connection_type: 'ssh',
      connection_port: 22,
      username: 'zuul',
      python_path: 'auto',
      host_keys: [],
      attributes: { backing: id },
    };
  }

  private request(owner: string, demand: BackingDemand): void {
    this.sequence += 1;
    const id = `100-${String(this.sequence).padStart(10, '0')}`;
    this.requested.push(demand);
    const request = requestWith({ id, node_types: [demand.label], requestor: owner, requestor_data: demand.data });
    this.requests.set(id, { ...request, owner });
    this.clock.schedule(this.bootMs, () => this.end(id));
  }

  private end(id: string): void {
    const request = this.requests.get(id);
    if (request === undefined) return;
    if (this.failures > 0) {
      this.failures -= 1;
      this.requests.set(id, { ...request, state: 'failed', state_time: this.now });
    } else {
      const nodeId = this.nextId();
      const node = nodeWith({ ...this.facts(nodeId), id: nodeId, type: request.node_types });
      this.records.set(nodeId, { node, version: 1, owner: undefined, lost: undefined });
      this.requests.set(id, { ...request, state: 'fulfilled', nodes: [nodeId], state_time: this.now });
    }
    this.changed();
  }

  private async update(
    { node: { id }, version }: BackingNode,
    signal: AbortSignal,
    change: (node: Node) => Node,
  ): Promise<boolean> {
    await this.exchange(signal);
    const record = this.records.get(id);
    if (record?.isBroken === true) throw new DriverError('unexpected', `the record of ${id} cannot be written`);
    if (record?.version !== version || record.unverified !== undefined) return false;
    this.write(record, change(record.node));
    this.changed();
    return true;
  }

  private write(record: BackingRecord, node: Node): void {
    this.version += 1;
    record.version = 1 + this.version;
    record.node = node;
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}

/** Throws unless the test cloud has simulated backing nodes. */
export function backingOf({
  backing,
}: {
  readonly backing?: SimulatedBackingNodes | undefined;
}): SimulatedBackingNodes {
  if (backing !== undefined) return backing;
  throw new DriverError('unexpected', 'the test cloud has no `backing`');
}
