/**
 * Compares the nodes of a provider with the cloud's list of instances: regularly, when the cloud announces a change,
 * before a ready node is handed out if the latest listing is too old, and whenever the launcher lists the instances
 * for another purpose. One listing serves all nodes and callers; a listing that fails proves nothing.
 */

import type { Call, Instance, Logger, Node, Provider } from '@nodepool/core';
import { backOffMs, checkInstances, IndexedListing, reasonOf, sleep } from '@nodepool/core';
import { driverCall, toDriverError, TransientError } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { MissingInstances } from '@nodepool/status';
import type { NodeEntry } from '@nodepool/store';
import { compare, isLost, SETTLE_MS, verdictOf, type InstanceListing } from './instance-verdict.js';
import { InterruptedNodes, isOccupied } from './interrupted-nodes.js';
import { LostNodes } from './lost-nodes.js';
import type { TurnLimiter } from '../quota/turn-limiter.js';

/**
 * Times (ms) until the next listing: after one of these checks, and after one for another purpose, which is repeated at
 * least as often if the driver lists the instances in the search for leaked resources.
 */
const INTERVAL_MS = 60_000;
const SHARED_INTERVAL_MS = 90_000;
/** Shortest pause (ms) after a regular listing, which may take longer than `CONFIRM_MS` in a large account. */
const PAUSE_MS = 10_000;
/** Age (ms) of the latest listing from which one that the provider makes for its launches counts. */
const OBSERVED_INTERVAL_MS = 10_000;
/** Age up to which a listing decides about a hand-over, in milliseconds. */
const MAX_AGE_MS = 150_000;
/** Time limits of a listing, and of the wait for one before a hand-over, in milliseconds. */
const LIST_TIMEOUT_MS = 300_000;
const HAND_OVER_TIMEOUT_MS = 10_000;
/** Time after a failed wait during which no hand-over waits again, in milliseconds. */
const PATIENCE_MS = 60_000;

export interface InstanceChecksOptions {
  readonly context: LauncherContext;
  readonly log: Logger;
  readonly provider: Provider;
  /** Limits how many comparisons with all nodes of a provider begin in one turn of the event loop. */
  readonly passes: TurnLimiter;
  /** Aborts when the regular listings end. */
  readonly retiring: AbortSignal;
  /** Aborts when checks before a hand-over end. */
  readonly signal: AbortSignal;
  /** Called when nodes can be handed out that could not be before. */
  readonly onUsable: () => void;
}

export class InstanceChecks {
  private latest: InstanceListing | undefined;
  /** `Clock.monotonic` milliseconds of the next regular listing, unless a loss must be confirmed earlier. */
  private nextAt = -Infinity;
  private running: Promise<InstanceListing> | undefined;
  /** Ends the wait for the next regular listing. */
  private wake: () => void = () => undefined;
  private rounds = 0;
  private readonly lost: LostNodes;
  private readonly interrupted: InterruptedNodes;
  /** Number of announced changes, and of those that had been announced when the latest listing was requested. */
  private announced = 0;
  private listedChanges = 0;
  /** Settles once the records agree with the latest listing. */
  private written: Promise<void> | undefined;
  /** Why the latest hand-over could not be checked; undefined after a listing. */
  private obstacle: string | undefined;
  /** `Clock.monotonic` milliseconds until which no hand-over waits for a listing. */
  private impatientUntil = -Infinity;

  constructor(private readonly options: InstanceChecksOptions) {
    const { retiring, provider } = options;
    const parts = { ...options, signal: retiring, provider: provider.config.name };
    this.lost = new LostNodes(parts);
    this.interrupted = new InterruptedNodes(parts);
  }

  /** The missing instances of the latest listing, if they are too many to be deleted. */
  get missingInstances(): MissingInstances | undefined {
    return this.lost.missingInstances;
  }

  /** Returns true if a ready node may be handed out, as far as is known without another listing. */
  isUsable(node: Node): boolean {
    if (!this.hasInstance(node)) return true;
    if (this.latest === undefined) return this.obstacle === undefined || !this.isSettled(node);
    return !this.isLost(node);
  }

  /** Returns true if the latest listing shows that the instance of a ready node is lost. */
  isLost(node: Node): boolean {
    return this.hasInstance(node) && this.latest !== undefined && this.lossOf(node, this.latest) !== undefined;
  }

  /**
   * Resolves with the reason why a ready node must not be handed out, or with undefined. Waits a limited time for a
   * listing if the latest one is too old. A cloud that does not answer is an obstacle only before the first listing:
   * until then, the records may be those of an older state of ZooKeeper.
   */
  async verify(node: Node): Promise<string | undefined> {
    if (!this.hasInstance(node)) return undefined;
    const now = this.options.context.clock.monotonic();
    const isSettled = this.isSettled(node);
    const isOld = isSettled && (this.latest === undefined || now - this.latest.askedAt > MAX_AGE_MS);
    if ((isOld || this.listedChanges < this.announced) && now >= this.impatientUntil) await this.refresh();
    if (this.latest !== undefined) return this.lossOf(node, this.latest);
    return isSettled ? `its instance could not be checked: ${this.obstacle ?? 'no listing yet'}` : undefined;
  }

  /**
   * Lists the instances at once, because the cloud has announced a change. Resolves once the records agree with the
   * listing. Rejects if the instances cannot be listed, or if the provider is retired.
   */
  async checkNow(): Promise<void> {
    const { context, retiring } = this.options;
    const change = (this.announced += 1);
    // A listing in progress was requested before the change.
    while (this.listedChanges < change) await this.read();
    await this.written;
    retiring.throwIfAborted();
    if (!context.store.complete) throw new TransientError('the records are not complete at the moment');
  }

  /**
   * Lists the instances. Every complete listing counts for the checks, whatever its purpose, except one that was
   * requested before the latest. `intervalMs`: time until the next regular listing.
   */
  async list(call: Call, intervalMs = SHARED_INTERVAL_MS): Promise<InstanceListing> {
    const end = this.begin(intervalMs);
    const instances = checkInstances(await this.options.provider.listNodes(call));
    this.options.signal.throwIfAborted();
    return end(instances);
  }

  /**
   * Begins a listing that the provider makes for its launches. The result takes the instances, unless the latest
   * listing is recent: a comparison with all nodes after each of these listings would be expensive.
   */
  observe(): (instances: readonly Instance[]) => void {
    const { context, signal } = this.options;
    const now = context.clock.monotonic();
    const isRecent = this.latest !== undefined && now - this.latest.askedAt < OBSERVED_INTERVAL_MS;
    if (isRecent || signal.aborted) return () => undefined;
    const end = this.begin(SHARED_INTERVAL_MS);
    return (instances) => {
      if (!signal.aborted) end(instances);
    };
  }

  /** Takes the state before a listing. The result applies its instances. */
  private begin(intervalMs: number): (instances: readonly Instance[]) => InstanceListing {
    const { clock } = this.options.context;
    const candidates = this.lost.freeNodes();
    const { announced } = this;
    const askedAt = clock.monotonic();
    const requestedAt = clock.now();
    return (instances) => {
      this.rounds += 1;
      const listing = new TimedListing(this.rounds, askedAt, requestedAt, instances);
      this.listedChanges = Math.max(this.listedChanges, announced);
      if (this.latest !== undefined && askedAt < this.latest.askedAt) return listing;
      this.latest = listing;
      this.nextAt = clock.monotonic() + intervalMs;
      this.listed(listing, candidates);
      return listing;
    };
  }

  /** Handles a node that has become free. */
  freed(entry: NodeEntry): void {
    const { latest, options } = this;
    const { context, retiring } = options;
    if (latest === undefined || !this.isLost(entry.node) || retiring.aborted) return;
    if (context.store.complete) this.lost.freed(entry, latest);
  }

  /** Lists the instances regularly while nodes need it, until the provider is retired. */
  async run(): Promise<void> {
    const { context, retiring: signal, log, provider } = this.options;
    const { clock, random, store } = context;
    if (provider.config.createsNodes === false) return;
    let failures = 0;
    let waitMs = 0;
    let notBefore = -Infinity;
    try {
      await store.ready({ signal });
      for (;;) {
        await this.pause(waitMs, signal);
        waitMs = Math.max(this.dueIn(), notBefore - clock.monotonic());
        if (waitMs > 0) continue;
        waitMs = INTERVAL_MS;
        if (!store.complete || !this.hasNodes()) continue;
        try {
          await this.read();
          failures = 0;
          notBefore = clock.monotonic() + PAUSE_MS;
          waitMs = Math.max(PAUSE_MS, this.dueIn());
        } catch (error) {
          signal.throwIfAborted();
          failures += 1;
          waitMs = backOffMs(failures, error, random);
          notBefore = clock.monotonic() + waitMs;
          log.warn('The instances of nodes could not be listed; retrying', {
            seconds: Math.round(waitMs / 1000),
            error: toDriverError(error),
          });
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.lost.withdraw();
    }
  }

  /** Waits until the next regular listing may be due, also because another one has shown a loss. */
  private async pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.wake = () => woken.abort();
    try {
      await sleep(this.options.context.clock, ms, AbortSignal.any([signal, woken.signal]));
    } catch (error) {
      if (signal.aborted || !woken.signal.aborted) throw error;
    }
  }

  /** Returns the time until the next regular listing, or until one that may confirm a loss, in milliseconds. */
  private dueIn(): number {
    const { latest, nextAt } = this;
    if (latest === undefined) return 0;
    const confirmAt = [this.lost, this.interrupted].map((each) => each.confirmationDue(latest) ?? Infinity);
    return Math.max(0, Math.min(nextAt, ...confirmAt) - this.options.context.clock.monotonic());
  }

  /** Returns false for nodes without an instance of their own. */
  private hasInstance({ external_id: id }: Node): boolean {
    return this.options.provider.config.createsNodes !== false && id !== null;
  }

  /** Returns false for a node that has just been launched: it needs no listing, but a later one may show its loss. */
  private isSettled({ state_time: readySince }: Node): boolean {
    return this.options.context.clock.now() - readySince * 1000 >= SETTLE_MS;
  }

  private lossOf(node: Node, listing: InstanceListing): string | undefined {
    // An earlier listing may show an earlier instance with the same id.
    if (listing.requestedAt < node.state_time * 1000) return undefined;
    const verdict = verdictOf(node, listing);
    return isLost(verdict) ? verdict.reason : undefined;
  }

  /** Returns true if the provider has nodes that are ready, in use or on hold. */
  private hasNodes(): boolean {
    const { context, provider } = this.options;
    for (const entry of context.store.nodes.ofProvider(provider.config.name))
      if (entry.node.state === 'ready' || isOccupied(entry)) return true;
    return false;
  }

  /** Waits for a listing, at most for the time limit of a hand-over. */
  private async refresh(): Promise<void> {
    const { context, signal, log } = this.options;
    const { clock } = context;
    const call: Call = { signal, deadline: clock.monotonic() + HAND_OVER_TIMEOUT_MS, log };
    try {
      await driverCall(clock, 'the list of instances', call, () => this.read());
    } catch (error) {
      this.obstacle = reasonOf(error);
      this.impatientUntil = clock.monotonic() + PATIENCE_MS;
      log.debug('The list of instances did not arrive before a hand-over', { reason: this.obstacle });
    }
  }

  /** Lists the instances, or joins the listing in progress. */
  private read(): Promise<InstanceListing> {
    const { context, provider, signal, log } = this.options;
    const { clock } = context;
    const call: Call = { signal, deadline: clock.monotonic() + LIST_TIMEOUT_MS, log };
    const what = `listing the instances of provider ${provider.config.name}`;
    this.running ??= driverCall(clock, what, call, (bounded) => this.list(bounded, INTERVAL_MS)).finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private listed(listing: InstanceListing, candidates: ReadonlySet<string>): void {
    const wasUnchecked = this.obstacle !== undefined;
    this.obstacle = undefined;
    this.impatientUntil = -Infinity;
    const { context, onUsable, provider } = this.options;
    if (wasUnchecked) onUsable();
    const written = this.compareAll(listing, candidates);
    this.written = written;
    context.tasks.run(`write lost instances of provider ${provider.config.name}`, () => written);
  }

  /** Compares all nodes with a listing, maybe in a later turn. Resolves once the records agree with the listing. */
  private async compareAll(listing: InstanceListing, candidates: ReadonlySet<string>): Promise<void> {
    const { context, passes, retiring, onUsable, provider } = this.options;
    await passes.acquire();
    // Records that are not complete may be those of an earlier session.
    if (!context.store.complete || retiring.aborted || provider.config.createsNodes === false) {
      for (const each of [this.lost, this.interrupted]) each.skip();
      this.wake();
      return;
    }
    const comparison = compare(context.store.nodes.ofProvider(provider.config.name), listing);
    const found = this.lost.apply(listing, comparison, candidates);
    if (found.isFoundAgain) onUsable();
    this.wake();
    const trustsMissing = this.lost.missingInstances === undefined;
    await Promise.all([found.written, this.interrupted.apply(listing, comparison, trustsMissing)]);
  }
}

class TimedListing extends IndexedListing implements InstanceListing {
  constructor(
    round: number,
    askedAt: number,
    readonly requestedAt: number,
    instances: readonly Instance[],
  ) {
    super(round, askedAt, instances);
  }
}
