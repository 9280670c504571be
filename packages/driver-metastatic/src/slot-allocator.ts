/**
 * Brings requests, backing nodes and slots in line with the launches and deletions of this process: adopts backing
 * nodes, assigns and frees slots, requests and releases backing nodes. All state is in the records; every write applies
 * only to the version that it was computed from, so any number of launchers can do this at the same time.
 */

import {
  printBackingData,
  WorkQueue,
  type BackingNodes,
  type Call,
  type DriverError,
  type NodeRequest,
  type ProviderContext,
  type Reconciled,
  type SlotUse,
} from '@nodepool/core';
import { Adoptions } from './adoptions.js';
import type { BackingSettings } from './config.js';
import { DamagedNodes } from './damaged-nodes.js';
import { planRequests, refusedUntil, requestDataOf, unplacedUsers, type DemandState } from './demand.js';
import { describeFailure, FailedRequests } from './failed-requests.js';
import { IsolatedWork } from './isolated-work.js';
import { unusableReason } from './lifetime.js';
import { LossWatch } from './loss-watch.js';
import { Releases } from './releases.js';
import { dataAfter, planRound, type Change, type PendingFree } from './round.js';
import {
  backingsOf,
  placeOf,
  placesByNode,
  type Backing,
  type Placement,
  type PlacesByNode,
  type SlotWant,
} from './slots.js';
import { WaitingLaunches } from './waiting-launches.js';
import { yielding, type Yielding } from './yielding.js';

/** Time limit of one round of writes, milliseconds. */
const ROUND_TIMEOUT_MS = 60_000;
/** Time for which launches, deletions and changes are gathered for the next round, milliseconds. */
const GATHER_MS = 10;
/** Time until the next round after a write that came too late, milliseconds. */
const LOST_RACE_MS = 50;
/** Number of rounds in a row that may lose a race before requests and releases are looked at all the same. */
const MAX_RACES = 20;
/** Time for which a slot remains free for an older launch of another launcher, milliseconds. */
const RESERVED_MS = 3000;
/** Key of the only item of the queue. */
const SLOTS = 'slots';

export interface SlotAllocatorOptions {
  readonly context: ProviderContext;
  readonly backing: BackingNodes;
  readonly owner: string;
  readonly settings: ReadonlyMap<string, BackingSettings>;
  /** Maximum number of backing requests in a row that may fail before the waiting launches are refused. */
  readonly maxAttempts: number;
}

export class SlotAllocator {
  private readonly queue: WorkQueue<typeof SLOTS>;
  private readonly waiters = new WaitingLaunches(() => this.queue.add(SLOTS, GATHER_MS));
  private readonly frees = new Set<PendingFree>();
  /** Reasons by id of backing nodes that failed a check of their login. */
  private readonly failures = new Map<string, string>();
  /** Times (unix ms) until which slots remain free for launches of others, by node. */
  private readonly reservations = new Map<string, number>();
  /** The backing nodes since the last change of a record. */
  private known: readonly Backing[] | undefined;
  private indexed: { readonly backings: readonly Backing[]; readonly places: PlacesByNode } | undefined;
  private readonly damaged: DamagedNodes;
  private readonly adoptions: Adoptions;
  private readonly releases: Releases;
  private readonly losses: LossWatch;
  private readonly failedRequests: FailedRequests;
  private readonly work: IsolatedWork;
  /** Number of rounds in a row that lost a race. */
  private races = 0;
  private readonly unsubscribe: () => void;
  private readonly stopping = new AbortController();

  constructor(private readonly options: SlotAllocatorOptions) {
    const { context, backing, owner, settings, maxAttempts } = options;
    this.damaged = new DamagedNodes(backing, context.log);
    this.losses = new LossWatch(context, owner);
    this.failedRequests = new FailedRequests({ settings, maxAttempts, log: context.log });
    this.work = new IsolatedWork(context, this.stopping.signal);
    const shared = { backing, owner, settings, work: this.work, log: context.log };
    this.adoptions = new Adoptions(shared);
    this.releases = new Releases({ ...shared, damaged: this.damaged });
    this.queue = new WorkQueue({
      ...context,
      name: () => `assign slots of ${owner}`,
      reconcile: () => this.reconcile(),
    });
    this.unsubscribe = backing.onChange(() => {
      this.known = undefined;
      this.queue.add(SLOTS, GATHER_MS);
    });
    this.queue.add(SLOTS);
  }

  /** Returns the backing nodes with their slots. */
  backings(): readonly Backing[] {
    const { backing, owner, settings } = this.options;
    this.known ??= backingsOf(backing.held(), backing.users(), { owner, settings });
    return this.known;
  }

  private get places(): PlacesByNode {
    const backings = this.backings();
    if (this.indexed?.backings !== backings) this.indexed = { backings, places: placesByNode(backings) };
    return this.indexed.places;
  }

  /** Returns the slot that a launch has; undefined if it has none. */
  placementOf(use: Pick<SlotUse, 'node' | 'attempt'>): Placement | undefined {
    return placeOf(this.places, use);
  }

  /**
   * Resolves with the slot of the launch, which it receives once there is one. Rejects with `RefusedError` if the
   * backing label cannot be launched, and when the signal of the call aborts.
   */
  place(want: SlotWant, call: Pick<Call, 'signal'>, onRetry?: (error: DriverError) => void): Promise<Placement> {
    return this.waiters.add(want, call, onRetry);
  }

  /** Returns what the launches of a label wait for, for operators. */
  waitsFor(label: string): string {
    const requests = this.requestsOf(label);
    const open = requests.filter(({ state }) => state !== 'failed');
    const failed = requests.findLast(({ state }) => state === 'failed');
    const last = failed === undefined ? '' : `; ${describeFailure(failed)}`;
    if (open.length === 0) return `waiting for a slot${last}`;
    return `waiting for ${open.map(({ id, state }) => `request ${id} (${state})`).join(', ')}${last}`;
  }

  /** Frees the slot of a launch. Resolves once no record has it; at once if it has none. */
  free(use: Pick<SlotUse, 'node' | 'attempt'>): Promise<void> {
    return new Promise((resolve) => {
      this.frees.add({ use, resolve });
      this.queue.add(SLOTS, GATHER_MS);
    });
  }

  /** Marks a backing node as failed: it gets no further nodes, and is released when it has none. */
  fail(backingId: string, reason: string): void {
    this.failures.set(backingId, reason);
    this.queue.add(SLOTS);
  }

  /** Ends the work. Resolves once nothing is written any more. */
  async stop(): Promise<void> {
    this.unsubscribe();
    this.stopping.abort(new Error('the provider was stopped'));
    this.queue.abort(new Error('the provider was stopped'));
    await this.queue.idle();
  }

  private get call(): Call {
    const { clock, log } = this.options.context;
    return { signal: this.stopping.signal, deadline: clock.monotonic() + ROUND_TIMEOUT_MS, log };
  }

  private get now(): number {
    return this.options.context.clock.now();
  }

  private requestsOf(label: string): readonly NodeRequest[] {
    const { backing, settings } = this.options;
    return backing.requests().filter((request) => requestDataOf(request, settings)?.label === label);
  }

  private async reconcile(): Promise<Reconciled> {
    const { backing } = this.options;
    if (this.stopping.signal.aborted) return 'done';
    await this.settle();
    this.losses.review(this.backings(), backing.users());
    await this.damaged.review(() => ({ backings: this.backings(), places: this.places }), this.call);
    const adoptions = this.adoptions.adoptAll(this.call, this.now);
    const changes = await this.changes();
    const written = await Promise.all(changes.map((change) => this.write(change)));
    await adoptions;
    const isBehind = written.some((each) => each !== true);
    await this.settle();
    this.races = written.includes(false) ? this.races + 1 : 0;
    // The change by the other program, which may arrive later, starts a round, too.
    if (this.races > 0 && this.races <= MAX_RACES) return { requeueAfterMs: LOST_RACE_MS };
    this.failedRequests.report(backing.requests(), this.waiters);
    await this.planRequests();
    await this.releases.releaseDue(this.backings(), this.yielding(this.backings()).nodes, this.call, this.now);
    return this.nextRound(isBehind || this.work.isUnsettled ? LOST_RACE_MS : Infinity);
  }

  private settle(): Promise<void> {
    return this.work.settle(() => this.options.backing.refresh(this.call));
  }

  private async planRequests(): Promise<void> {
    const { backing, owner } = this.options;
    const { create, remove } = planRequests(this.state());
    if (create.length + remove.length === 0 || this.work.isWaiting(owner)) return;
    await this.work.run(owner, 'The backing requests could not be changed', { owner }, () =>
      backing.plan(() => planRequests(this.state()), this.call),
    );
  }

  /** Returns the changes that this round writes, at most one for each backing node. */
  private async changes(): Promise<readonly Change[]> {
    const orphans = await this.orphans();
    const backings = this.backings();
    for (const id of this.failures.keys()) {
      const backing = backings.find((each) => each.id === id);
      if (backing === undefined || backing.data.failed) this.failures.delete(id);
    }
    const { changes, placed, freed, reserved } = planRound({
      backings,
      places: this.places,
      usable: this.usable(backings),
      waiters: this.waiters,
      requests: this.requestsByNode(),
      others: this.others(),
      frees: this.frees,
      orphans,
      failures: this.failures,
      isWritable: (each) => this.isWritable(each),
    });
    for (const node of reserved) {
      if (!this.reservations.has(node)) this.reservations.set(node, this.now + RESERVED_MS);
    }
    for (const [waiter, place] of placed) waiter.resolve(place);
    for (const pending of freed) {
      this.frees.delete(pending);
      pending.resolve();
    }
    return changes;
  }

  private requestsByNode(): ReadonlyMap<string, string> {
    return new Map(
      this.options.backing
        .users()
        .flatMap(({ id, allocated_to: request }): readonly [string, string][] =>
          request === null ? [] : [[id, request]],
        ),
    );
  }

  /** Returns the launches of others that may take a free slot; those that have not for a while do not count. */
  private others(): ReadonlyMap<string, Pick<SlotWant, 'label'>> {
    const own = new Set([...this.waiters].map(({ use }) => use.node));
    const unplaced = unplacedUsers(this.options.backing.users(), this.backings());
    const ids = new Set(unplaced.map(({ id }) => id));
    for (const id of this.reservations.keys()) if (!ids.has(id)) this.reservations.delete(id);
    return new Map(
      unplaced
        .filter(({ id }) => !own.has(id) && this.now < (this.reservations.get(id) ?? Infinity))
        .map(({ id, type: [label = ''] }) => [id, { label }]),
    );
  }

  private isWritable({ id, held }: Backing): boolean {
    return held.unverified === undefined && !this.work.isWaiting(id);
  }

  /**
   * Writes the change of a backing node. Resolves with false if the record was changed by another program, and with
   * undefined if the write failed.
   */
  private async write(change: Change): Promise<boolean | undefined> {
    const { backing, assigned, freed, failure } = change;
    const { log } = this.options.context;
    const data = printBackingData(dataAfter(change, this.now));
    const isWritten = await this.work.run(
      backing.id,
      'A backing node could not be written',
      { node_id: backing.id, label: backing.data.label },
      () => this.options.backing.update(backing.held, data, this.call),
    );
    if (isWritten !== true) return isWritten;
    for (const [slot, waiter] of assigned) {
      log.debug('Assigned a slot', { node_id: waiter.use.node, backing_node: backing.id, slot });
      waiter.resolve({ backing, slot });
    }
    if (failure !== undefined) {
      log.warn('A backing node gets no further nodes', { node_id: backing.id, reason: failure });
    }
    for (const slot of freed) log.debug('Freed a slot', { backing_node: backing.id, slot });
    return true;
  }

  /** Returns slots whose nodes have no record any more. */
  private async orphans(): Promise<readonly Placement[]> {
    if (this.findOrphans().length === 0) return [];
    // The record of a node is older than its slot, but the caches may not have it yet.
    await this.options.backing.refresh(this.call);
    return this.findOrphans();
  }

  private findOrphans(): readonly Placement[] {
    const known = new Set(this.options.backing.users().map(({ id }) => id));
    const wanted = new Set([...this.waiters].map(({ use }) => use.node));
    return this.backings().flatMap((backing) =>
      [...backing.data.used].flatMap(([slot, { node }]) =>
        known.has(node) || wanted.has(node) ? [] : [{ backing, slot }],
      ),
    );
  }

  private state(): DemandState {
    const { backing, settings, maxAttempts } = this.options;
    const backings = this.backings();
    return {
      settings,
      backings,
      usable: this.usable(backings).filter(({ id }) => !this.work.isBroken(id)),
      users: backing.users(),
      waiting: new Map([...this.waiters].map(({ use, label }) => [use.node, label])),
      requests: backing.requests(),
      isStuck: ({ id }) => this.work.isBroken(id),
      isServed: (label) => backing.isServed(label),
      maxAttempts,
      now: this.now,
    };
  }

  private usable(backings: readonly Backing[]): readonly Backing[] {
    const { nodes } = this.yielding(backings);
    return backings.filter((each) => this.isUsable(each) && !nodes.has(each.id));
  }

  private isUsable(each: Backing): boolean {
    return unusableReason(each, this.options.settings.get(each.data.label), this.now) === undefined;
  }

  private yielding(backings: readonly Backing[]): Yielding {
    const { backing, settings } = this.options;
    return yielding({
      settings,
      backings,
      users: backing.users(),
      isUsable: (each) => this.isUsable(each),
      capacityOf: (label) => backing.capacityOf(label),
      now: this.now,
    });
  }

  /** Returns when a backing node reaches the end of a time, a refusal ends, or failed work is retried. */
  private nextRound(withinMs: number): Reconciled {
    const { backing, owner } = this.options;
    const backings = this.backings();
    const requests = backing.requests();
    const keys = new Set([owner, ...backings.map(({ id }) => id), ...requests.map(({ id }) => id)]);
    this.work.retain((key) => keys.has(key));
    const times = [
      this.releases.nextAt(backings, this.now),
      this.yielding(backings).nextAt,
      ...this.reservations.values(),
    ];
    for (const request of requests) if (request.state === 'failed') times.push(refusedUntil(request));
    const next = Math.min(...times.filter((time) => time > this.now));
    const requeueAfterMs = Math.min(next - this.now, this.work.nextRetryMs, withinMs);
    return requeueAfterMs === Infinity ? 'done' : { requeueAfterMs };
  }
}
