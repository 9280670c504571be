/**
 * Keeps `min-ready` nodes of one label. Of all the launchers that serve the label, one at a time does: the winner of an
 * election; so what is missing is asked for once.
 */

import { election, type Election, type LockRecipe } from '@nodepool/zookeeper';
import { ELECTIONS_ROOT, REQUESTS_ROOT } from '@nodepool/store';
import { MIN_READY_REQUESTOR, type Timer } from '@nodepool/core';
import { type LauncherContext, unixSeconds } from '../context.js';

/** Requests to keep nodes ready come after everybody else's. */
const PRIORITY = 900;
/** First and longest wait after the label could not be served, milliseconds. */
const BACK_OFF_MS = { first: 5000, longest: 60_000 } as const;

/** What is known of the label beyond itself. */
export interface LabelSituation {
  /** Nodes that are there or have been asked for. */
  supply(): number;
  /** An `event_id` by which a request is known as ours. */
  newEventId(): string;
  /** Takes back up to `count` of our requests that nobody works on yet. */
  withdraw(count: number): void;
}

export class MinReadyLabel {
  private readonly election: Election;
  /** While we are the ones who ask for nodes of the label. */
  private term: AbortSignal | undefined;
  /** Requests that are being put. */
  private ordering = 0;
  private failures = 0;
  private backOff: Timer | undefined;
  private woken = false;

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

  /** To be called when the configured number may have changed. */
  setMinReady(minReady: number): void {
    this.minReady = minReady;
    this.retry();
  }

  /** To be called when anything may have changed that the decision depends on. Decides after all that came with it. */
  wake(): void {
    if (this.woken || this.term === undefined) return;
    this.woken = true;
    queueMicrotask(() => {
      this.woken = false;
      this.decide();
    });
  }

  /** Nobody could serve a request for the label. It is not tried again at once. */
  declined(): void {
    if (this.backOff !== undefined || this.term === undefined) return;
    const waitMs = Math.min(BACK_OFF_MS.first * 2 ** this.failures, BACK_OFF_MS.longest);
    this.failures += 1;
    this.backOff = this.context.clock.schedule(waitMs, () => {
      this.backOff = undefined;
      this.wake();
    });
  }

  /** A request for the label was served. */
  served(): void {
    this.failures = 0;
  }

  /** There is reason to believe that the label can be served (again). */
  retry(): void {
    this.failures = 0;
    this.endBackOff();
    this.wake();
  }

  /** Gives the office up. */
  async stop(): Promise<void> {
    this.term = undefined;
    this.endBackOff();
    await this.election.close();
  }

  private async elected(term: AbortSignal): Promise<void> {
    // Behind the answer to a read, the caches know what the one before us has asked for.
    await this.context.store.zooKeeper.exists(REQUESTS_ROOT, { signal: term });
    if (term.aborted) return;
    this.term = term;
    term.addEventListener('abort', () => this.lost(term), { once: true });
    this.context.log.debug('This launcher keeps nodes of the label ready', { label: this.label });
    this.wake();
  }

  private lost(term: AbortSignal): void {
    if (this.term !== term) return;
    this.term = undefined;
    this.endBackOff();
  }

  private decide(): void {
    const { store } = this.context;
    if (this.term === undefined || !store.complete || !store.components.complete) return;
    const missing = this.minReady - this.situation.supply() - this.ordering;
    if (missing > 0) {
      const obstacle = this.obstacle();
      this.explain(missing, obstacle);
      if (obstacle === undefined) this.order(missing, this.term);
    } else if (missing < 0 && this.ordering === 0) {
      this.situation.withdraw(-missing);
    }
  }

  /** Why it makes no sense to ask for a node now. */
  private obstacle(): string | undefined {
    if (this.backOff !== undefined) return 'the label could not be served a while ago';
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

  private order(count: number, term: AbortSignal): void {
    this.context.log.info('Asking for nodes to keep ready', { label: this.label, count });
    for (let i = 0; i < count; i += 1) {
      this.ordering += 1;
      this.context.tasks.run(`ask for a node of label ${this.label} to keep ready`, () => this.submit(term));
    }
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
      // The office is lost, with the session or in stopping: so is the request, or somebody else counts it.
      if (term.aborted) return;
      this.context.log.warn('Asking for a node to keep ready failed; it is tried again', { label: this.label, error });
      // It may be there all the same: the caches will tell until then.
      this.declined();
    } finally {
      this.ordering -= 1;
      this.wake();
    }
  }

  private endBackOff(): void {
    this.backOff?.cancel();
    this.backOff = undefined;
  }
}

/** Labels may have characters that names of znodes cannot have, or that mean something in a path. */
function electionPath(label: string): string {
  const name = /^\.+$/.test(label) ? label.replaceAll('.', '%2E') : encodeURIComponent(label);
  return `${ELECTIONS_ROOT}/min-ready/${name}`;
}
