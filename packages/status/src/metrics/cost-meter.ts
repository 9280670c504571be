/**
 * Adds up the cost of nodes by provider, label, tenant, project and use. A change of a node costs O(1), a reading costs
 * time per group. The cost of a launch counts once its driver reports the machine, from the creation of the node.
 */

import { hourlyPrice, pricesIn, type Clock, type JsonObject, type Node, type Prices } from '@nodepool/core';
import type { Change, NodeEntry, Store } from '@nodepool/store';

/** `in-use`: allocated to a request or used by its requestor; `idle`: ready; `overhead`: launched or deleted. */
export type NodeUse = 'in-use' | 'idle' | 'overhead';

/** Nodes whose costs are added up. */
export interface CostGroup {
  readonly provider: string;
  readonly label: string;
  /** Empty for none. */
  readonly tenant: string;
  readonly project: string;
  readonly use: NodeUse;
  readonly currency: string;
}

/** The cost of a group in a period. */
export interface GroupCost extends CostGroup {
  /** At the end of the period. */
  readonly perHour: number;
  readonly amount: number;
}

export interface CostMeterOptions {
  readonly store: Pick<Store, 'nodes'>;
  readonly clock: Clock;
  /** Returns the sections of the providers by name. A changed configuration returns other objects. */
  readonly providers: () => ReadonlyMap<string, { readonly section: JsonObject }>;
}

/** Limit of the tenants and projects that are counted separately; requestors may name any number. */
const MAX_OWNERS = 200;
/** Name of the tenants and projects beyond the limit. */
const OTHERS = 'others';
const HOUR_MS = 3_600_000;
/** Precision of the times in records, milliseconds. */
const PRECISION_MS = 1000;

interface Group {
  readonly of: CostGroup;
  perHour: number;
  nodes: number;
  /** Cost until `at` that is not read yet, by reader. */
  readonly unread: number[];
  at: number;
}

interface Counted {
  readonly group: Group;
  readonly perHour: number;
  readonly node: Node;
}

export class CostMeter {
  private readonly groups = new Map<string, Group>();
  private readonly nodes = new Map<string, Counted>();
  private readonly owners = new Set<string>();
  private prices: ReadonlyMap<string, Prices> = new Map();
  private known: ReadonlyMap<string, unknown> | undefined;
  private readers = 0;
  private startedAt = 0;

  constructor(private readonly options: CostMeterOptions) {}

  /** Counts the present nodes and follows their changes until the returned function is called. */
  start(): () => void {
    const { nodes } = this.options.store;
    this.startedAt = this.options.clock.now();
    this.readPrices();
    return nodes.onChange(this.changed);
  }

  /** Returns a function that returns the cost of each group since its last call. */
  reader(): () => GroupCost[] {
    const reader = this.readers;
    this.readers += 1;
    for (const { unread } of this.groups.values()) unread.push(0);
    return () => this.read(reader);
  }

  /** Returns the groups with nodes and their present costs, without amounts. */
  present(): GroupCost[] {
    const present: GroupCost[] = [];
    for (const { of, perHour, nodes } of this.groups.values())
      if (nodes > 0) present.push({ ...of, perHour, amount: 0 });
    return present;
  }

  private read(reader: number): GroupCost[] {
    if (this.known !== this.options.providers()) this.readPrices();
    const now = this.options.clock.now();
    const costs: GroupCost[] = [];
    for (const [key, group] of this.groups) {
      this.advance(group, now);
      const amount = group.unread[reader] ?? 0;
      if (amount > 0 || group.nodes > 0) costs.push({ ...group.of, perHour: group.perHour, amount });
      group.unread[reader] = 0;
      if (group.nodes === 0 && group.unread.every((rest) => rest === 0)) this.groups.delete(key);
    }
    return costs;
  }

  /** Reads the prices of the configuration, and counts all nodes by them from now on. */
  private readPrices(): void {
    const { store, providers } = this.options;
    this.known = providers();
    const prices = new Map<string, Prices>();
    for (const [name, { section }] of providers()) {
      const found = pricesIn(section);
      if (found !== undefined) prices.set(name, found);
    }
    if (prices.size === 0 && this.prices.size === 0) return;
    this.prices = prices;
    for (const id of [...this.nodes.keys()]) this.remove(id);
    for (const { id, node } of store.nodes.all()) this.add(id, node);
  }

  private readonly changed = ({ id, before: earlier, after }: Change<NodeEntry>): void => {
    if (this.prices.size === 0) return;
    const before = this.nodes.get(id);
    if (before?.node === after?.node) return;
    this.remove(id);
    // A record that appears with its machine, e.g. after it was unreadable, may have been counted before.
    const isNew = earlier !== undefined && (earlier.node.machine ?? null) === null;
    if (after !== undefined) this.add(id, after.node, isNew);
  };

  /** `isNew`: its cost so far counts as well if the node was created while the meter was running. */
  private add(id: string, node: Node, isNew = false): void {
    const prices = this.prices.get(node.provider ?? '');
    const perHour = hourlyPrice(node.machine, prices);
    if (perHour === undefined || prices === undefined) return;
    const now = this.options.clock.now();
    const created = (node.created_time ?? Infinity) * 1000;
    if (isNew && created >= this.startedAt - PRECISION_MS && created < now) {
      const launch = this.group(node, 'overhead', prices);
      addTo(launch, (perHour * (now - created)) / HOUR_MS);
    }
    const group = this.group(node, useOf(node), prices);
    this.advance(group, now);
    group.perHour += perHour;
    group.nodes += 1;
    this.nodes.set(id, { group, perHour, node });
  }

  private remove(id: string): void {
    const counted = this.nodes.get(id);
    if (counted === undefined) return;
    const { group, perHour } = counted;
    this.nodes.delete(id);
    this.advance(group, this.options.clock.now());
    group.nodes -= 1;
    group.perHour = group.nodes === 0 ? 0 : group.perHour - perHour;
  }

  private group(node: Node, use: NodeUse, { currency }: Prices): Group {
    const isOwned = use !== 'idle';
    const owner = this.ownerOf(isOwned ? (node.tenant_name ?? '') : '', isOwned ? (node.project ?? '') : '');
    const of = { provider: node.provider ?? '', label: node.type[0] ?? '', ...owner, use, currency };
    const key = JSON.stringify(of);
    let group = this.groups.get(key);
    if (group === undefined) {
      const unread = Array.from({ length: this.readers }, () => 0);
      group = { of, perHour: 0, nodes: 0, unread, at: this.options.clock.now() };
      this.groups.set(key, group);
    }
    return group;
  }

  private ownerOf(tenant: string, project: string): Pick<CostGroup, 'tenant' | 'project'> {
    const key = JSON.stringify([tenant, project]);
    if (!this.owners.has(key)) {
      if (this.owners.size >= MAX_OWNERS) return { tenant: OTHERS, project: OTHERS };
      this.owners.add(key);
    }
    return { tenant, project };
  }

  private advance(group: Group, now: number): void {
    if (now > group.at) addTo(group, (group.perHour * (now - group.at)) / HOUR_MS);
    group.at = now;
  }
}

function addTo({ unread }: Group, amount: number): void {
  for (let index = 0; index < unread.length; index += 1) unread[index] = (unread[index] ?? 0) + amount;
}

function useOf({ state, allocated_to: request }: Node): NodeUse {
  switch (state) {
    case 'in-use':
    case 'hold':
      return 'in-use';
    case 'ready':
      return request === null ? 'idle' : 'in-use';
    default:
      return 'overhead';
  }
}
