/**
 * Maintains one ready node per slot of the machines that a provider declares: registers missing nodes, updates free
 * nodes after a change of settings, and withdraws free nodes whose machine is out of service or no longer declared.
 * Nodes in use are not changed. docs/how-it-works.md explains why several launchers register each slot once.
 */

import {
  shortened,
  Slots,
  WorkQueue,
  type Logger,
  type Node,
  type NodeData,
  type NodeSupply,
  type ProviderConfig,
  type Reconciled,
  type SuppliedMachine,
} from '@nodepool/core';
import {
  describeOutage,
  Index,
  TransactionTooLargeError,
  type Change,
  type MachineOutage,
  type NodeEntry,
} from '@nodepool/store';
import { unixSeconds, type LauncherContext } from '../context.js';
import { deleteFreeNode } from '../deletion/delete-free-node.js';
import type { NodeCheck } from '../pool/ready-nodes.js';
import { MachineChecks, nameOfMachine, type CheckedMachine } from './machine-checks.js';
import {
  assignSlots,
  changedFacts,
  changeOf,
  isFree,
  isSupplied,
  isSuppliedByDriver,
  machineKey,
  machineKeyOf,
  mayRunJob,
  suppliedNode,
  twinsOf,
  type MachineRecord,
  type SlotTable,
} from './supplied-slots.js';
import { describeSlotShortage } from './supply-capacity.js';

/** Limit of the records that one transaction creates, because transactions are limited in size. */
const MAX_CREATED = 100;
/** Limit of the hosts compared with their records in one turn of the event loop. */
const MAX_HOSTS = 50;
/** Limit of the nodes that are updated or withdrawn at the same time. */
const MAX_CHANGED = 32;
/** Key of the only item of the queue. */
const RECORDS = 'records';

/**
 * Time for which a slot is left to the program that has deleted its node, milliseconds. It registers the slot again at
 * once; a Python launcher scans the machine before, and does not look for other nodes afterwards.
 */
const YIELD_MS = 3000;

/** Limit of the characters of a published reason. */
const MAX_REASON = 300;

export interface NodeSupplierOptions {
  readonly context: LauncherContext;
  readonly log: Logger;
  readonly config: ProviderConfig;
  /** Aborts when the registration of nodes ends. */
  readonly retiring: AbortSignal;
  /** Aborts when checks of machines end. */
  readonly signal: AbortSignal;
  /** Returns true while this launcher deletes the node. */
  readonly isDeleting: (nodeId: string) => boolean;
  /** Called when machines are declared, taken out of service, or back in service. */
  readonly onChange: () => void;
}

export class NodeSupplier implements NodeSupply {
  private readonly checks: MachineChecks;
  private readonly queue: WorkQueue<typeof RECORDS>;
  private readonly changing = new Slots(MAX_CHANGED);
  private byHost = new Map<string, readonly SuppliedMachine[]>();
  /** Records by host name. */
  private readonly records = new Index<NodeEntry>(({ node }) => (isSupplied(node) ? [node.hostname ?? ''] : []));
  /** Records of other providers that may be of the same machines, by host name. */
  private strangers = new Index<NodeEntry>(() => []);
  /** Hosts whose slots must be compared with their records. */
  private readonly dirty = new Set<string>();
  /** Times from which on vacant slots of hosts are registered, in `Clock.monotonic` milliseconds. */
  private readonly yielded = new Map<string, number>();
  /** Records that may differ from their machine and are checked once they are free. */
  private readonly unsettled = new Set<string>();
  private unsubscribe: readonly (() => void)[] = [];

  constructor(private readonly options: NodeSupplierOptions) {
    const { context, log, config, signal } = options;
    const provider = config.name;
    this.checks = new MachineChecks({ context, log, provider, signal, onChecked: (...args) => this.checked(...args) });
    this.queue = new WorkQueue({
      ...context,
      name: () => `register nodes of provider ${provider}`,
      reconcile: () => this.reconcile(),
    });
  }

  apply(machines: readonly SuppliedMachine[]): void {
    const { context, config, retiring, onChange } = this.options;
    if (retiring.aborted) return;
    const byKey = new Map(machines.map((machine) => [machineKey(machine), machine]));
    const byHost = new Map<string, SuppliedMachine[]>();
    for (const machine of byKey.values())
      byHost.set(machine.hostname, [...(byHost.get(machine.hostname) ?? []), machine]);
    this.byHost = byHost;
    this.strangers = new Index<NodeEntry>((entry) => (this.isStranger(entry) ? [entry.node.hostname ?? ''] : []));
    for (const entry of context.store.nodes.all()) this.strangers.update(undefined, entry);
    if (this.unsubscribe.length === 0) this.follow();
    for (const { id, node } of context.store.nodes.ofProvider(config.name))
      if (isSupplied(node)) this.unsettled.add(id);
    this.checks.apply(byKey);
    this.touchAll();
    onChange();
  }

  /** Returns true if a ready node may be handed out for the label, according to the latest check of its machine. */
  isUsable(node: Node, label: string): boolean {
    if (!this.supplies(node)) return true;
    const checked = this.checks.get(machineKeyOf(node));
    const isServing = checked !== undefined && checked.outage === undefined && checked.machine.labels.includes(label);
    return isServing && this.twinsOf(node).every(isFree);
  }

  /** Checks a node before it is handed out, and its machine if the latest check is too old. */
  async verify(node: Node): Promise<NodeCheck> {
    if (!this.supplies(node)) return { kind: 'usable', change: {} };
    const checked = this.checks.get(machineKeyOf(node));
    if (checked === undefined) return { kind: 'unusable', reason: 'its machine is not configured any more' };
    const outage = await this.checks.verify(checked);
    if (outage !== undefined) return { kind: 'unusable', reason: outage };
    for (const twin of this.twinsOf(node)) {
      const reason = `node ${node.id} has its slot`;
      if (!isFree(twin) || !(await this.withdraw(twin, reason)))
        return { kind: 'unusable', reason: `node ${twin.id} has its slot, too` };
    }
    const record = this.recordOf(checked, node.slot ?? 0);
    return { kind: 'usable', change: record === undefined ? {} : changedFacts(node, record) };
  }

  /** Returns the reason why the machines of the pool can never serve these labels together; undefined if they can. */
  shortage(pool: string, labels: readonly string[]): string | undefined {
    const machines = [...this.checks.all()].map(({ machine }) => machine).filter((machine) => machine.pool === pool);
    return describeSlotShortage(machines, labels);
  }

  /** Returns the machines of the pool that are out of service. */
  outages(pool: string): MachineOutage[] {
    return [...this.checks.all()].flatMap(({ machine, outage }) => {
      if (outage === undefined || machine.pool !== pool) return [];
      const { labels, slots } = machine;
      const reason = shortened(outage.reason, MAX_REASON);
      return { machine: nameOfMachine(machine), labels, slots, reason, since: outage.since / 1000 };
    });
  }

  /** Returns the number of machines that the pool has. */
  machineCount(pool: string): number {
    return [...this.checks.all()].filter(({ machine }) => machine.pool === pool).length;
  }

  /** Ends the registration of nodes; those of accepted requests are still checked. Resolves once nothing is written. */
  async retire(): Promise<void> {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.checks.retire();
    this.queue.close();
    await this.queue.idle();
  }

  /** Resolves once no check is running. `signal` must have aborted. */
  stop(): Promise<void> {
    return this.checks.stop();
  }

  /** Returns false for nodes of a cloud: their host names may be their ids, as those of supplied machines are. */
  private supplies(node: Node): boolean {
    return this.options.config.createsNodes === false && isSupplied(node);
  }

  private follow(): void {
    const { store } = this.options.context;
    const { nodes } = store;
    const provider = this.options.config.name;
    this.unsubscribe = [
      nodes.onChange((change) => this.recordChanged(change)),
      store.onComplete((complete) => {
        if (complete) this.touchAll();
      }),
    ];
    for (const entry of nodes.ofProvider(provider)) this.records.update(undefined, entry);
  }

  /** Returns true for a record of another provider with the name of a machine of this one. */
  private isStranger({ node }: NodeEntry): boolean {
    if (node.provider === this.options.config.name || !this.byHost.has(node.hostname ?? '')) return false;
    return isSuppliedByDriver(node);
  }

  private strangerChanged({ before, after }: Change<NodeEntry>): void {
    if (![before, after].some((entry) => entry !== undefined && this.isStranger(entry))) return;
    this.strangers.update(before, after);
    const host = (after ?? before)?.node.hostname ?? '';
    // The job that used the node may have broken the machine.
    if (before !== undefined && mayRunJob(before) && (after === undefined || !mayRunJob(after)))
      this.expireChecks(host);
    this.touch(host);
  }

  private recordChanged(change: Change<NodeEntry>): void {
    this.strangerChanged(change);
    const { id, before, after } = change;
    const own = [before, after].filter((entry) => entry?.node.provider === this.options.config.name);
    const [first] = own;
    if (first === undefined) return;
    this.records.update(own.includes(before) ? before : undefined, own.includes(after) ? after : undefined);
    if (after === undefined) {
      this.unsettled.delete(id);
      const host = first.node.hostname ?? '';
      // The job that used the node may have broken the machine.
      this.expireChecks(host);
      if (!this.options.isDeleting(id)) {
        this.yielded.set(host, this.options.context.clock.monotonic() + YIELD_MS);
      }
    }
    for (const entry of own) if (entry !== undefined && isSupplied(entry.node)) this.touch(entry.node.hostname ?? '');
  }

  private checked(checked: CheckedMachine, changed: boolean): void {
    const { hostname } = checked.machine;
    if (changed) {
      for (const { id, node } of this.recordsOf(hostname))
        if (machineKeyOf(node) === checked.key) this.unsettled.add(id);
    }
    this.touch(hostname);
    if (changed) this.options.onChange();
  }

  private expireChecks(host: string): void {
    for (const machine of this.byHost.get(host) ?? []) this.checks.expire(machineKey(machine));
  }

  private touch(host: string): void {
    this.dirty.add(host);
    this.queue.add(RECORDS);
  }

  private touchAll(): void {
    const { context, config } = this.options;
    for (const host of this.byHost.keys()) this.touch(host);
    for (const { node } of context.store.nodes.ofProvider(config.name))
      if (isSupplied(node)) this.touch(node.hostname ?? '');
  }

  private recordsOf(host: string): NodeEntry[] {
    const { nodes } = this.options.context.store;
    return this.records.ids(host).flatMap((id) => nodes.get(id) ?? []);
  }

  /** Returns the records of other providers that may run jobs: a machine may move to another provider meanwhile. */
  private strangersOf(host: string): NodeEntry[] {
    const { nodes } = this.options.context.store;
    const keys = new Set((this.byHost.get(host) ?? []).map(machineKey));
    return this.strangers
      .ids(host)
      .flatMap((id) => nodes.get(id) ?? [])
      .filter((entry) => mayRunJob(entry) && keys.has(machineKeyOf(entry.node)));
  }

  private slotsOf(host: string): SlotTable {
    return assignSlots(this.byHost.get(host) ?? [], [...this.recordsOf(host), ...this.strangersOf(host)]);
  }

  private async reconcile(): Promise<Reconciled> {
    const { store } = this.options.context;
    const stopped = (): boolean => this.options.retiring.aborted;
    if (!store.complete || stopped()) return 'done';
    const hosts = new Set([...this.dirty].slice(0, MAX_HOSTS));
    for (const host of hosts) this.dirty.delete(host);
    try {
      const settled = [...hosts].flatMap((host) => this.settleHost(host, this.slotsOf(host)));
      await Promise.all(settled);
      const waits = new Map([...hosts].map((host) => [host, this.yieldMs(host)] as const));
      await this.register(new Set([...hosts].filter((host) => waits.get(host) === 0)));
      if (this.dirty.size > 0) this.queue.add(RECORDS);
      const yielding = [...waits].filter(([, waitMs]) => waitMs > 0);
      for (const [host] of yielding) this.dirty.add(host);
      return yielding.length === 0 ? 'done' : { requeueAfterMs: Math.min(...yielding.map(([, waitMs]) => waitMs)) };
    } catch (error) {
      if (stopped()) return 'done';
      for (const host of hosts) this.dirty.add(host);
      throw error;
    }
  }

  /** Returns the time for which the vacant slots of a host are still left to another program, milliseconds. */
  private yieldMs(host: string): number {
    const leftMs = (this.yielded.get(host) ?? 0) - this.options.context.clock.monotonic();
    if (leftMs <= 0) this.yielded.delete(host);
    return Math.max(0, leftMs);
  }

  /** Brings the free records of a host up to date. */
  private settleHost(host: string, { slots, surplus }: SlotTable): Promise<void>[] {
    const slotOf = new Map(
      [...slots.values()].flatMap((own) =>
        own.flatMap((entry, slot) => (entry === undefined ? [] : [[entry.id, slot]])),
      ),
    );
    for (const { id, node } of surplus) {
      if (node.provider !== this.options.config.name) continue;
      // Other surplus records may belong to a launcher that has a newer configuration.
      if (node.slot !== null && node.slot in (slots.get(machineKeyOf(node)) ?? [])) this.unsettled.add(id);
    }
    const isSurplus = new Set(surplus.map(({ id }) => id));
    return this.recordsOf(host)
      .filter((entry) => this.unsettled.has(entry.id) && isFree(entry))
      .map((entry) => this.settle(entry, isSurplus.has(entry.id) ? undefined : slotOf.get(entry.id)));
  }

  private async settle(entry: NodeEntry, slot: number | undefined): Promise<void> {
    const { context, retiring, log } = this.options;
    const checked = this.checks.get(machineKeyOf(entry.node));
    const reason = withdrawalReason(checked, slot);
    if (reason !== undefined) {
      const withdrawn = await this.changing.run(retiring, () => this.withdraw(entry, reason));
      if (withdrawn) this.unsettled.delete(entry.id);
      return;
    }
    const record = checked === undefined ? undefined : this.recordOf(checked, slot ?? 0);
    if (record === undefined) return;
    const change = changeOf(entry.node, record);
    if (change !== undefined) {
      const handle = await this.changing.run(retiring, () =>
        context.store.nodes.tryLock(entry.id, { from: entry, change }),
      );
      if (handle === undefined) return;
      await handle.release();
      log.info('Updated a ready node', { node_id: entry.id, fields: Object.keys(change).join(', ') });
    }
    this.unsettled.delete(entry.id);
  }

  /** Deletes a free node. Returns false if it is not free any more. */
  private async withdraw(entry: NodeEntry, reason: string): Promise<boolean> {
    const { context, config, log } = this.options;
    const pool = `${config.name}/${entry.node.pool ?? ''}`;
    if (!(await deleteFreeNode(context, entry, pool, reason))) return false;
    log.info('Withdrew a ready node', { node_id: entry.id, machine: entry.node.hostname, reason });
    return true;
  }

  private twinsOf(node: Node): NodeEntry[] {
    const host = node.hostname ?? '';
    return twinsOf(node, [...this.recordsOf(host), ...this.strangersOf(host)]);
  }

  /** Creates the records of vacant slots whose machines have passed a check since they became vacant. */
  private async register(hosts: ReadonlySet<string>): Promise<void> {
    const { context, config, retiring, log } = this.options;
    for (const { checked } of this.vacancies(hosts)) if (!checked.cleared) this.checks.request(checked.key);
    let maxCreated = MAX_CREATED;
    while (!retiring.aborted && this.registrable(hosts).length > 0) {
      let planned: readonly Vacancy[] = [];
      const plan = (): readonly NodeData[] => {
        // A retired provider no longer watches the records.
        planned = retiring.aborted ? [] : this.registrable(hosts).slice(0, maxCreated);
        return planned.flatMap(({ record }) =>
          record === undefined ? [] : [suppliedNode(record, unixSeconds(context))],
        );
      };
      let ids: readonly string[];
      try {
        ids = await context.store.nodes.createOnce(config.name, plan, { signal: retiring });
      } catch (error) {
        if (!(error instanceof TransactionTooLargeError) || planned.length <= 1) throw error;
        maxCreated = Math.ceil(planned.length / 2);
        continue;
      }
      for (const [index, { checked, record }] of planned.entries()) {
        const fields = { node_id: ids[index], machine: checked.machine.hostname, slot: record?.slot };
        log.info('Registered a ready node', { ...fields, pool: checked.machine.pool });
      }
      const left = new Set(this.registrable(hosts).map(({ checked }) => checked));
      for (const { checked } of planned) if (!left.has(checked)) checked.cleared = false;
    }
  }

  private registrable(hosts: ReadonlySet<string>): readonly Vacancy[] {
    return this.vacancies(hosts).filter(({ checked, record }) => checked.cleared && record !== undefined);
  }

  private vacancies(hosts: ReadonlySet<string>): Vacancy[] {
    return [...hosts].flatMap((host) =>
      [...this.slotsOf(host).slots].flatMap(([key, own]) => {
        const checked = this.checks.get(key);
        if (checked === undefined) return [];
        return own.flatMap((entry, slot) =>
          entry === undefined ? [{ checked, record: this.recordOf(checked, slot) }] : [],
        );
      }),
    );
  }

  /** Returns undefined before the first check of the machine, and for a pool that does not exist. */
  private recordOf({ machine, facts }: CheckedMachine, slot: number): MachineRecord | undefined {
    const { config } = this.options;
    const pool = config.pools.get(machine.pool);
    if (facts === undefined || pool === undefined) return undefined;
    return { provider: config.name, driver: config.driver, pool, machine, facts, slot };
  }
}

/** A slot without a record. */
interface Vacancy {
  readonly checked: CheckedMachine;
  readonly record: MachineRecord | undefined;
}

function withdrawalReason(checked: CheckedMachine | undefined, slot: number | undefined): string | undefined {
  if (checked === undefined) return 'its machine is not configured any more';
  if (slot === undefined) return 'its machine has no slot left for it';
  const { machine, outage } = checked;
  return outage === undefined ? undefined : describeOutage({ machine: nameOfMachine(machine), reason: outage.reason });
}
