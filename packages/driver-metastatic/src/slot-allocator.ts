/**
 * Brings requests, backing nodes and slots in line with the launches and deletions of this process: adopts backing
 * nodes, assigns and frees slots, requests and releases backing nodes. All state is in the records; every write applies
 * only to the version that it was computed from, so any number of launchers can do this at the same time.
 */

import {
  printBackingData,
  RefusedError,
  slotPlaceOf,
  WorkQueue,
  type BackingData,
  type BackingNodes,
  type Call,
  type DriverError,
  type NodeRequest,
  type ProviderContext,
  type Reconciled,
  type SlotUse,
} from '@nodepool/core';
import type { BackingSettings } from './config.js';
import { isRefusal, planRequests, refusedUntil, requestDataOf, type DemandState } from './demand.js';
import { expiresAt, releasedAt, unusableOf, unusableReason } from './lifetime.js';
import {
  assignSlots,
  backingsOf,
  placeOf,
  placesByNode,
  type Backing,
  type Placement,
  type PlacesByNode,
  type SlotWant,
} from './slots.js';

/** Time limit of one round of writes, milliseconds. */
const ROUND_TIMEOUT_MS = 60_000;
/** Time for which launches, deletions and changes are gathered for the next round, milliseconds. */
const GATHER_MS = 10;
/** Time until the next round after a write that came too late, milliseconds. */
const LOST_RACE_MS = 50;
/** Key of the only item of the queue. */
const SLOTS = 'slots';

/** A launch that waits for a slot. */
interface Waiter extends SlotWant {
  readonly resolve: (placement: Placement) => void;
  readonly reject: (error: DriverError) => void;
  readonly onRetry: ((error: DriverError) => void) | undefined;
}

interface PendingFree {
  readonly use: Pick<SlotUse, 'node' | 'attempt'>;
  readonly resolve: () => void;
}

/** The changes of one backing node in one round. */
interface Change {
  readonly backing: Backing;
  readonly assigned: Map<number, Waiter>;
  readonly freed: Set<number>;
  failure: string | undefined;
}

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
  private readonly waiters = new Set<Waiter>();
  private readonly frees = new Set<PendingFree>();
  /** Reasons by id of backing nodes that failed a check of their login. */
  private readonly failures = new Map<string, string>();
  /** Ids of failed requests whose failure was reported to launches of this process. */
  private readonly reported = new Set<string>();
  /** The backing nodes since the last change of a record. */
  private known: readonly Backing[] | undefined;
  private indexed: { readonly backings: readonly Backing[]; readonly places: PlacesByNode } | undefined;
  /** Ids of backing nodes that are lost and have nodes. */
  private lost: ReadonlySet<string> = new Set();
  private readonly unsubscribe: () => void;
  private readonly stopping = new AbortController();

  constructor(private readonly options: SlotAllocatorOptions) {
    const { context, backing, owner } = options;
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
    const { backing } = this.options;
    this.known ??= backingsOf(backing.held(), backing.users());
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
  place(want: SlotWant, { signal }: Pick<Call, 'signal'>, onRetry?: (error: DriverError) => void): Promise<Placement> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.waiters.delete(waiter);
        signal.removeEventListener('abort', onAbort);
        // The launch may have been the only one that a request was for.
        this.queue.add(SLOTS, GATHER_MS);
      };
      const onAbort = (): void => {
        end();
        reject(signal.reason instanceof Error ? signal.reason : new Error('the launch was aborted'));
      };
      const waiter: Waiter = {
        ...want,
        onRetry,
        resolve: (placement) => {
          end();
          resolve(placement);
        },
        reject: (error) => {
          end();
          reject(error);
        },
      };
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener('abort', onAbort);
      this.waiters.add(waiter);
      this.queue.add(SLOTS, GATHER_MS);
    });
  }

  /** Returns what the launches of a label wait for, for operators. */
  waitsFor(label: string): string {
    const open = this.requestsOf(label).filter(({ state }) => state !== 'failed');
    if (open.length === 0) return 'waiting for a slot';
    return `waiting for ${open.map(({ id, state }) => `request ${id} (${state})`).join(', ')}`;
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
    if (this.stopping.signal.aborted) return 'done';
    this.noticeLosses();
    const adoptions = this.adoptAll();
    const changes = await this.changes();
    const written = await Promise.all([...changes.map((change) => this.write(change)), ...adoptions]);
    // The change by the other program, which may arrive later, starts a round, too.
    if (written.includes(false)) return { requeueAfterMs: LOST_RACE_MS };
    this.reportFailures();
    const { backing } = this.options;
    const plan = planRequests(this.state());
    if (plan.create.length + plan.remove.length > 0) await backing.plan(() => planRequests(this.state()), this.call);
    await this.releaseDue();
    return this.nextRound();
  }

  /** Lets the launcher list the instances at once after a backing node with nodes was lost: they are lost with it. */
  private noticeLosses(): void {
    const { context } = this.options;
    const usable = new Set(this.backings().flatMap(({ id, held }) => (unusableOf(held) === undefined ? [id] : [])));
    const lost = new Set<string>();
    for (const user of this.options.backing.users()) {
      const place = slotPlaceOf(user);
      if (place !== undefined && !usable.has(place.backingNode)) lost.add(place.backingNode);
    }
    const isNew = [...lost].some((id) => !this.lost.has(id));
    this.lost = lost;
    if (!isNew || context.checkInstances === undefined) return;
    const { checkInstances } = context;
    context.tasks.run(`check the nodes of ${this.options.owner}`, async () => {
      try {
        await checkInstances();
      } catch (error) {
        context.log.warn('The nodes of a lost backing node could not be checked; the next listing does', { error });
      }
    });
  }

  private adoptAll(): readonly Promise<boolean>[] {
    const { backing, settings, owner, context } = this.options;
    return backing.requests().flatMap((request) => {
      const label = requestDataOf(request, settings)?.label;
      const known = label === undefined ? undefined : settings.get(label);
      if (request.state !== 'fulfilled' || label === undefined || known === undefined) return [];
      const now = this.now / 1000;
      const adoption = backing.adopt(
        request,
        (node) =>
          printBackingData({
            owner,
            label,
            slots: known.slots,
            failed: false,
            reason: null,
            launched: node.created_time ?? now,
            idle: null,
            used: new Map(),
          }),
        this.call,
      );
      return [
        adoption.then((isHeld) => {
          const [node_id] = request.nodes;
          if (isHeld) context.log.info('Took over a backing node', { node_id, label, node_request_id: request.id });
          return true;
        }),
      ];
    });
  }

  /** Returns the changes that this round writes, at most one for each backing node. */
  private async changes(): Promise<readonly Change[]> {
    const orphans = await this.orphans();
    const backings = this.backings();
    const changes = new Map<string, Change>();
    const changeOf = (backing: Backing): Change => {
      const change = changes.get(backing.id) ?? {
        backing,
        assigned: new Map<number, Waiter>(),
        freed: new Set<number>(),
        failure: undefined,
      };
      changes.set(backing.id, change);
      return change;
    };
    for (const pending of [...this.frees]) {
      const place = placeOf(this.places, pending.use);
      if (place !== undefined && place.backing.data.used.has(place.slot)) {
        changeOf(place.backing).freed.add(place.slot);
        continue;
      }
      // A slot that only the record of its node names becomes free with that record.
      if (place !== undefined) await this.stampIdle(place.backing, place.slot);
      this.frees.delete(pending);
      pending.resolve();
    }
    for (const { backing, slot } of orphans) if (backing.data.used.has(slot)) changeOf(backing).freed.add(slot);
    for (const [id, reason] of this.failures) {
      const backing = backings.find((each) => each.id === id);
      if (backing === undefined || backing.data.failed) this.failures.delete(id);
      else changeOf(backing).failure = reason;
    }
    const { places } = this;
    const unplaced: Waiter[] = [];
    for (const waiter of [...this.waiters]) {
      const place = placeOf(places, waiter.use);
      if (place === undefined) unplaced.push(waiter);
      else waiter.resolve(place);
    }
    // In the order of the launches' nodes, which is that of their requests.
    unplaced.sort((a, b) => (a.use.node < b.use.node ? -1 : 1));
    const usable = this.usable(backings).filter(({ id }) => !this.failures.has(id));
    const byWant = new Map<SlotWant, Waiter>(unplaced.map((waiter) => [waiter, waiter]));
    for (const { want, backing, slot } of assignSlots(unplaced, usable)) {
      const waiter = byWant.get(want);
      if (waiter !== undefined) changeOf(backing).assigned.set(slot, waiter);
    }
    return [...changes.values()];
  }

  /** Writes the change of a backing node. Resolves with false if the record was changed by another program. */
  private async write(change: Change): Promise<boolean> {
    const { backing, assigned, freed, failure } = change;
    const used = new Map([...backing.data.used].filter(([slot]) => !freed.has(slot)));
    for (const [slot, { use }] of assigned) used.set(slot, use);
    const isIdle = used.size === 0 && freed.size > 0;
    const data: BackingData = {
      ...backing.data,
      used,
      ...(failure === undefined ? {} : { failed: true, reason: failure }),
      idle: isIdle ? this.now / 1000 : backing.data.idle,
    };
    if (!(await this.options.backing.update(backing.held, printBackingData(data), this.call))) return false;
    const { log } = this.options.context;
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

  /** Records since when a backing node is idle whose last node was assigned by another implementation. */
  private async stampIdle(backing: Backing, slot: number): Promise<void> {
    if ([...backing.used.keys()].some((each) => each !== slot)) return;
    const data: BackingData = { ...backing.data, idle: this.now / 1000 };
    await this.options.backing.update(backing.held, printBackingData(data), this.call);
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

  /** Tells one launch of each failed request, and refuses the waiting launches after the last one of a row. */
  private reportFailures(): void {
    const { backing, settings, maxAttempts, context } = this.options;
    const failed = backing.requests().filter(({ state }) => state === 'failed');
    for (const id of this.reported) if (!failed.some((request) => request.id === id)) this.reported.delete(id);
    for (const request of failed) {
      const data = requestDataOf(request, settings);
      if (data === undefined || this.reported.has(request.id)) continue;
      this.reported.add(request.id);
      const { label, attempt } = data;
      // Pools often decline for the same reason.
      const reasons = [...new Set(Object.values(request.decline_reasons))].join('; ');
      const why = `backing request ${request.id} failed${reasons === '' ? '' : `: ${reasons}`}`;
      context.log.warn('A backing request failed', { node_request_id: request.id, label, attempt, reason: reasons });
      const waiting = [...this.waiters].filter((waiter) => waiter.label === label);
      if (isRefusal({ request, data }, { maxAttempts })) for (const waiter of waiting) waiter.reject(refused(why));
      else waiting[0]?.onRetry?.(refused(why));
    }
  }

  private state(): DemandState {
    const { backing, settings, maxAttempts } = this.options;
    const backings = this.backings();
    return {
      settings,
      backings,
      usable: this.usable(backings),
      users: backing.users(),
      waiting: new Map([...this.waiters].map(({ use, label }) => [use.node, label])),
      requests: backing.requests(),
      isServed: (label) => backing.isServed(label),
      maxAttempts,
      now: this.now,
    };
  }

  private usable(backings: readonly Backing[]): readonly Backing[] {
    const { settings } = this.options;
    return backings.filter((each) => unusableReason(each, settings.get(each.data.label), this.now) === undefined);
  }

  private releasedAt(each: Backing): number {
    const { backing, settings } = this.options;
    const { label } = each.data;
    const known = settings.get(label);
    // A launcher with another configuration has the label.
    const isOthers = known === undefined && unusableOf(each.held) === undefined && backing.isServed(label);
    return isOthers ? Infinity : releasedAt(each, known, this.now);
  }

  private async releaseDue(): Promise<void> {
    const { backing, context } = this.options;
    const due = this.backings().filter((each) => this.releasedAt(each) <= this.now);
    await Promise.all(
      due.map(async ({ id, held, data }) => {
        const { label, launched, idle, reason } = data;
        if (!(await backing.release(held, this.call))) return;
        context.log.info('Released a backing node', {
          node_id: id,
          label,
          launched,
          idle,
          reason: held.lost ?? reason,
        });
      }),
    );
  }

  /** Returns when a backing node reaches the end of a time, or a refusal ends. */
  private nextRound(): Reconciled {
    const { backing, settings } = this.options;
    const times = this.backings().flatMap((each) => {
      const known = settings.get(each.data.label);
      return [this.releasedAt(each), known === undefined ? Infinity : expiresAt(each, known)];
    });
    for (const request of backing.requests()) if (request.state === 'failed') times.push(refusedUntil(request));
    const next = Math.min(...times.filter((time) => time > this.now));
    return next === Infinity ? 'done' : { requeueAfterMs: next - this.now };
  }
}

function refused(message: string): RefusedError {
  return new RefusedError(message, { outcome: 'not-applied' });
}
