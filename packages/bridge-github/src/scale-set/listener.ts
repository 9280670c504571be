/** Registers the scale set, opens its session, and passes its messages on, again after each failure. */

import { backOffMs, isError, linkSignals, sleep, type Clock, type Logger, type RandomSource } from '@nodepool/core';
import type { ActionsService } from '../github/actions-service.js';
import type { JobMessage, Message, ScaleSetDocument, Statistics } from '../github/documents.js';
import { isConflict, isNotFound } from '../github/errors.js';
import type { ScaleSetSettings } from '../settings/settings.js';
import { registeredScaleSet } from './registration.js';
import { MessageSession } from './session.js';

export interface ListenerOptions {
  readonly service: ActionsService;
  readonly settings: () => ScaleSetSettings;
  readonly owner: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Number of jobs that can be served now. */
  readonly capacity: () => number;
  /** Id of the session that the last bridge has left; null if there is none. */
  readonly left: () => string | null;
  /** Called when a session was opened; its id is stored before messages are read. */
  readonly onSession: (scaleSet: ScaleSetDocument, session: string) => Promise<void>;
  readonly onStatistics: (statistics: Statistics) => void;
  readonly onJob: (job: JobMessage) => void;
  /** Called after each answer of GitHub, and with the reason when it cannot be reached. */
  readonly onHealth: (problem: string | undefined) => void;
}

const BACK_OFF = { firstMs: 1000, longestMs: 60_000 };
/** Shortest time between calls for messages because the capacity has changed (ms). */
const CAPACITY_INTERVAL_MS = 2000;

export class Listener {
  private session: MessageSession | undefined;
  private set: ScaleSetDocument | undefined;
  /** Ends the call for messages in progress. */
  private poll: (() => void) | undefined;
  private polledCapacity = 0;
  private polledAt = -Infinity;

  constructor(private readonly options: ListenerOptions) {}

  /** The scale set while there is a session. */
  get scaleSet(): ScaleSetDocument | undefined {
    return this.session === undefined ? undefined : this.set;
  }

  /** Listens until the signal aborts, then closes the session. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, onHealth } = this.options;
    for (let failures = 0; !signal.aborted;) {
      try {
        await this.listen(signal, () => (failures = 0));
      } catch (error) {
        if (isAborted(signal)) return;
        // A lost session needs a new one at once.
        failures = isNotFound(error) && failures === 0 && this.session !== undefined ? 0 : failures + 1;
        this.session = undefined;
        const reason = isConflict(error)
          ? `another program has the session of the scale set: ${messageOf(error)}`
          : messageOf(error);
        onHealth(reason);
        const waitMs = failures === 0 ? CAPACITY_INTERVAL_MS : backOffMs(failures, error, random, BACK_OFF);
        log.warn('The scale set has no session with GitHub; retrying', { error: reason, seconds: waitMs / 1000 });
        await sleep(clock, waitMs, signal).catch(() => undefined);
      }
    }
  }

  /** Closes the session, so that another bridge can open one at once. */
  async close(signal: AbortSignal): Promise<void> {
    const { session } = this;
    this.session = undefined;
    await session?.close(signal);
  }

  /** Acquires jobs that are offered, as far as GitHub gives them. */
  async acquire(jobs: readonly JobMessage[], signal: AbortSignal): Promise<void> {
    const ids = jobs.map(({ requestId }) => requestId);
    if (ids.length > 0) await this.session?.acquire(ids, signal);
  }

  /** Tells GitHub a changed capacity soon, by a new call for messages. */
  capacityChanged(): void {
    const { clock, capacity } = this.options;
    if (this.poll === undefined || capacity() === this.polledCapacity) return;
    if (clock.monotonic() - this.polledAt >= CAPACITY_INTERVAL_MS) this.poll();
  }

  private async listen(signal: AbortSignal, onAnswer: () => void): Promise<void> {
    const { clock, service, settings, log, owner, left, onSession, onStatistics, onHealth } = this.options;
    const set = await registeredScaleSet(service, settings(), log, signal);
    const session = await MessageSession.open({ clock, service, owner, log, scaleSetId: set.id }, left(), signal);
    this.set = set;
    this.session = session;
    await onSession(set, session.id);
    log.info('Listening for jobs', { scale_set_id: set.id, session: session.id });
    onHealth(undefined);
    if (session.statistics !== undefined) onStatistics(session.statistics);
    while (!signal.aborted) {
      const message = await this.next(session, signal);
      onAnswer();
      onHealth(undefined);
      if (message !== undefined) await this.handle(session, message, signal);
    }
  }

  /** Resolves with undefined, too, if the capacity has changed. */
  private async next(session: MessageSession, signal: AbortSignal): Promise<Message | undefined> {
    const { capacity, clock } = this.options;
    const changed = new Error('the capacity has changed');
    const poll = linkSignals(signal);
    const state = { isChanged: false };
    this.polledCapacity = capacity();
    this.polledAt = clock.monotonic();
    this.poll = () => {
      state.isChanged = true;
      poll.abort(changed);
    };
    try {
      return await session.next(this.polledCapacity, poll.signal);
    } catch (error) {
      if (state.isChanged && !signal.aborted) return undefined;
      throw error;
    } finally {
      this.poll = undefined;
      poll.unlink();
    }
  }

  /** A message is confirmed at the end: if this fails, it comes again, and everything here can be repeated. */
  private async handle(session: MessageSession, message: Message, signal: AbortSignal): Promise<void> {
    const { onJob, onStatistics } = this.options;
    const offered = message.jobs.filter(({ kind }) => kind === 'available').map(({ requestId }) => requestId);
    for (const job of message.jobs) onJob(job);
    if (message.statistics !== undefined) onStatistics(message.statistics);
    if (offered.length > 0) await session.acquire(offered, signal);
    await session.confirm(message, signal);
  }
}

/** The state of a signal changes during an await, which the compiler does not know. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}
