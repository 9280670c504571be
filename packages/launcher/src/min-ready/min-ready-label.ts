/**
 * Keeps `min-ready` nodes of one label. Of all the launchers that serve the label, one at a time does: the winner of an
 * election; so what is missing is asked for once.
 */

import { election, type Election, type LockRecipe } from '@nodepool/zookeeper';
import { ELECTIONS_ROOT, REQUESTS_ROOT } from '@nodepool/store';
import { backOffMs, MIN_READY_REQUESTOR, type Reconciled } from '@nodepool/core';
import { type LauncherContext, unixSeconds } from '../context.js';

/** Requests to keep nodes ready come after everybody else's. */
const PRIORITY = 900;
/** Wait after the label could not be served, milliseconds. */
const BACK_OFF = { firstMs: 5000, longestMs: 60_000 } as const;

/** What is known of the label beyond itself. */
export interface LabelSituation {
  /** Reconciles the label. */
  requeue(): void;
  /** Nodes that are there or have been asked for. */
  supply(): number;
  /** An `event_id` by which a request is known as ours. */
  newEventId(): string;
  /** Takes back up to `count` of our requests that nobody works on yet. */
  withdraw(count: number): void;
}

export class MinReadyLabel {
  private readonly election: Election;
  /** Aborts when another launcher keeps nodes of the label ready; undefined while one does. */
  private term: AbortSignal | undefined;
  private failures = 0;
  /** `Clock.monotonic` milliseconds before which no node is requested, because the label could not be served. */
  private backOffUntil = -Infinity;

  constructor(
    private readonly context: LauncherContext,
    private readonly label: string,
    private minReady: number,
    private readonly situation: LabelSituation,
    locks: LockRecipe,
  ) {
    const { store, clock, log, hostname } = context;
    this.election = election(store.zooKeeper, electionPath(label), {
      locks,
      clock,
      identifier: hostname,
      onError: (error) => log.warn('The election of who keeps nodes ready failed; it is tried again', { label, error }),
    });
    this.election.run((term) => this.elected(term));
  }

  /** Follows another `min-ready`. */
  setMinReady(minReady: number): void {
    this.minReady = minReady;
    this.retry();
  }

  /** A request for the label was declined. Nodes are requested again after a while. */
  declined(): void {
    const { clock, random } = this.context;
    if (this.isBackingOff || this.term === undefined) return;
    this.failures += 1;
    this.backOffUntil = clock.monotonic() + backOffMs(this.failures, undefined, random, BACK_OFF);
    this.situation.requeue();
  }

  /** A request for the label was served. */
  served(): void {
    this.failures = 0;
  }

  /** There is reason to believe that the label can be served again. */
  retry(): void {
    this.failures = 0;
    this.backOffUntil = -Infinity;
    this.situation.requeue();
  }

  /** Leaves the label to other launchers. */
  async stop(): Promise<void> {
    this.term = undefined;
    await this.election.close();
  }

  /** Requests the nodes that are missing, or withdraws requests for nodes that are too many. */
  async reconcile(): Promise<Reconciled> {
    const { store } = this.context;
    if (this.term === undefined || !store.complete || !store.components.complete) return 'done';
    const missing = this.minReady - this.situation.supply();
    if (missing < 0) this.situation.withdraw(-missing);
    if (missing <= 0) return 'done';
    const obstacle = this.obstacle();
    this.explain(missing, obstacle);
    if (obstacle === undefined) await this.order(missing, this.term);
    return this.isBackingOff ? { requeueAfterMs: this.backOffUntil - this.context.clock.monotonic() } : 'done';
  }

  private async elected(term: AbortSignal): Promise<void> {
    // Behind the answer to a read, the caches know what the one before us has asked for.
    await this.context.store.zooKeeper.exists(REQUESTS_ROOT, { signal: term });
    if (term.aborted) return;
    this.term = term;
    term.addEventListener('abort', () => this.lost(term), { once: true });
    this.backOffUntil = -Infinity;
    this.context.log.debug('This launcher keeps nodes of the label ready', { label: this.label });
    this.situation.requeue();
  }

  private lost(term: AbortSignal): void {
    if (this.term === term) this.term = undefined;
  }

  private get isBackingOff(): boolean {
    return this.backOffUntil > this.context.clock.monotonic();
  }

  /** Returns why it makes no sense to request a node now; undefined if it does. */
  private obstacle(): string | undefined {
    if (this.isBackingOff) return 'the label could not be served a while ago';
    for (const pool of this.context.store.components.pools()) {
      if (!pool.paused && pool.supported_labels.includes(this.label)) return undefined;
    }
    return 'no registered pool that has room has the label';
  }

  private explain(missing: number, obstacle: string | undefined): void {
    const what = obstacle === undefined ? 'nodes to keep ready are asked for' : 'nodes to keep ready are missing';
    const reason = obstacle ?? `${missing} of ${this.minReady} are missing`;
    this.context.decisions.record('label', this.label, 'min-ready', what, reason);
  }

  private async order(count: number, term: AbortSignal): Promise<void> {
    this.context.log.info('Asking for nodes to keep ready', { label: this.label, count });
    await Promise.all(Array.from({ length: count }, () => this.submit(term)));
  }

  private async submit(term: AbortSignal): Promise<void> {
    try {
      await this.context.store.requests.submit(
        {
          state: 'requested',
          state_time: unixSeconds(this.context),
          declined_by: [],
          node_types: [this.label],
          nodes: [],
          reuse: false,
          requestor: MIN_READY_REQUESTOR,
          requestor_data: null,
          provider: null,
          relative_priority: 0,
          event_id: this.situation.newEventId(),
          created_time: null,
          tenant_name: null,
        },
        { priority: PRIORITY, ephemeral: true, signal: term },
      );
    } catch (error) {
      // The office is lost, with the session or in stopping: so is the request, or another launcher counts it.
      if (term.aborted) return;
      this.context.log.warn('Asking for a node to keep ready failed; it is tried again', { label: this.label, error });
      // The request may exist all the same; the caches know by the end of the back-off.
      this.declined();
    }
  }
}

/** Labels may have characters that names of znodes cannot have, or that mean something in a path. */
function electionPath(label: string): string {
  const name = /^\.+$/.test(label) ? label.replaceAll('.', '%2E') : encodeURIComponent(label);
  return `${ELECTIONS_ROOT}/min-ready/${name}`;
}
