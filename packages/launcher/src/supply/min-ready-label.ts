/**
 * Keeps `min-ready` nodes of one label ready, or as many as `ready` asks for. The launchers that serve the label elect
 * one of them to request missing nodes, so that each missing node is requested once.
 */

import { election, type Election, type LockRecipe } from '@nodepool/zookeeper';
import { ELECTIONS_ROOT, encodedName, REQUESTS_ROOT } from '@nodepool/store';
import type { ReadyTarget } from '@nodepool/config';
import { backOffMs, MIN_READY_REQUESTOR, type Reconciled } from '@nodepool/core';
import { type LauncherContext, unixSeconds } from '../context.js';

/** Priority of requests for ready nodes: the lowest, so that all other requests are served first. */
const PRIORITY = 900;
/** Limits of the back-off after the label could not be served, in milliseconds. */
const BACK_OFF = { firstMs: 5000, longestMs: 60_000 } as const;

/** The supply of the label's nodes and requests, and actions on the label. */
export interface LabelSituation {
  /** Reconciles the label. */
  requeue(): void;
  /** Returns the number of nodes to keep ready. */
  target(): ReadyTarget;
  /** Returns the number of nodes that exist or have been requested. */
  supply(): number;
  /** Returns a new `event_id`; its prefix marks the request as this launcher's. */
  newEventId(): string;
  /** Withdraws up to `count` of this launcher's requests that no pool has accepted yet. */
  withdraw(count: number): void;
  /** Called when this launcher is elected, with a signal that aborts when it no longer is. */
  elected(term: AbortSignal): void;
}

export class MinReadyLabel {
  private readonly election: Election;
  /** Aborts when this launcher loses the election; undefined while it is not elected. */
  private term: AbortSignal | undefined;
  private failures = 0;
  /**
   * End of the back-off in `Clock.monotonic` milliseconds: no node is requested before, because the label was not
   * served.
   */
  private backOffUntil = -Infinity;

  constructor(
    private readonly context: LauncherContext,
    private readonly label: string,
    private readonly situation: LabelSituation,
    locks: LockRecipe,
  ) {
    const { store, clock, log, hostname } = context;
    this.election = election(store.zooKeeper, electionPath(label), {
      locks,
      clock,
      identifier: hostname,
      onError: (error) =>
        log.warn('The election of the launcher that keeps nodes ready failed; retrying', { label, error }),
    });
    this.election.run((term) => this.elected(term));
  }

  /** Starts or continues the back-off; to be called when any launcher's min-ready request for the label has failed. */
  declined(): void {
    const { clock, random } = this.context;
    if (this.isBackingOff || this.term === undefined) return;
    this.failures += 1;
    this.backOffUntil = clock.monotonic() + backOffMs(this.failures, undefined, random, BACK_OFF);
    this.situation.requeue();
  }

  /** Resets the back-off; to be called when any launcher's min-ready request for the label was fulfilled. */
  served(): void {
    this.failures = 0;
  }

  /** Ends the back-off; to be called when the label may be served again, e.g. because its image has changed. */
  retry(): void {
    this.failures = 0;
    this.backOffUntil = -Infinity;
    this.situation.requeue();
  }

  /** Leaves the election, so that another launcher can keep nodes of the label ready. */
  async stop(): Promise<void> {
    this.term = undefined;
    await this.election.close();
  }

  /** Requests missing nodes, or withdraws requests for surplus nodes. */
  async reconcile(): Promise<Reconciled> {
    const { store } = this.context;
    if (this.term === undefined || !store.complete || !store.components.complete) return 'done';
    const target = this.situation.target();
    let missing = target.count - this.situation.supply();
    if (missing > 0) {
      // Nodes that other launchers have made ready may not be in the cache yet.
      await store.nodes.refresh();
      missing = target.count - this.situation.supply();
    }
    if (missing < 0) this.situation.withdraw(-missing);
    if (missing <= 0) return 'done';
    const obstacle = this.obstacle();
    this.explain(missing, target, obstacle);
    if (obstacle === undefined) await this.order(missing, this.term);
    return this.isBackingOff ? { requeueAfterMs: this.backOffUntil - this.context.clock.monotonic() } : 'done';
  }

  private async elected(term: AbortSignal): Promise<void> {
    // Once this read is answered, the caches have all requests of the previously elected launcher.
    await this.context.store.zooKeeper.exists(REQUESTS_ROOT, { signal: term });
    if (term.aborted) return;
    this.term = term;
    term.addEventListener('abort', () => this.lost(term), { once: true });
    this.backOffUntil = -Infinity;
    this.context.log.debug('This launcher keeps nodes of the label ready', { label: this.label });
    this.situation.elected(term);
    this.situation.requeue();
  }

  private lost(term: AbortSignal): void {
    if (this.term === term) this.term = undefined;
  }

  private get isBackingOff(): boolean {
    return this.backOffUntil > this.context.clock.monotonic();
  }

  /** Returns the reason not to request a node now; undefined if there is none. */
  private obstacle(): string | undefined {
    if (this.isBackingOff) return 'the label could not be served recently';
    for (const pool of this.context.store.components.pools()) {
      if (!pool.paused && pool.supported_labels.includes(this.label)) return undefined;
    }
    return 'no registered pool with the label has capacity';
  }

  private explain(missing: number, target: ReadyTarget, obstacle: string | undefined): void {
    const what = obstacle === undefined ? 'requests min-ready nodes' : 'lacks min-ready nodes';
    const why = target.reason === 'min-ready' ? '' : `: ${target.reason}`;
    const reason = obstacle ?? `${missing} of ${target.count} are missing${why}`;
    this.context.decisions.record('label', this.label, 'min-ready', what, reason);
  }

  private async order(count: number, term: AbortSignal): Promise<void> {
    this.context.log.info('Requesting min-ready nodes', { label: this.label, count });
    await Promise.all(Array.from({ length: count }, () => this.submit(term)));
  }

  private async submit(term: AbortSignal): Promise<void> {
    try {
      await this.context.store.requests.submit(
        {
          state: 'requested',
          state_time: unixSeconds(this.context),
          declined_by: [],
          decline_reasons: {},
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
      // The election is lost, because the session ended or the launcher stops. The request is then lost as well, or the
      // next elected launcher counts it.
      if (term.aborted) return;
      this.context.log.warn('Requesting a min-ready node failed; retrying', { label: this.label, error });
      // The request may exist nevertheless; the caches have it by the end of the back-off.
      this.declined();
    }
  }
}

function electionPath(label: string): string {
  return `${ELECTIONS_ROOT}/min-ready/${encodedName(label)}`;
}
