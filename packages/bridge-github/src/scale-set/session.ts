/** The session of a scale set, through which GitHub sends its messages. A session has one client at a time. */

import {
  addAbortCallback,
  linkSignals,
  removeAbortCallback,
  type Clock,
  type Logger,
  type Timer,
} from '@nodepool/core';
import type { ActionsService } from '../github/actions-service.js';
import type { Message, SessionDocument, Statistics } from '../github/documents.js';
import { GithubError, isConflict, isUnauthorized } from '../github/errors.js';

/** Time after an abort for which a call that opens a session may still be answered (ms). */
const OPEN_AFTER_ABORT_MS = 3000;

export interface SessionOptions {
  readonly clock: Clock;
  readonly service: ActionsService;
  readonly scaleSetId: number;
  readonly owner: string;
  readonly log: Logger;
}

export class MessageSession {
  private last = 0;

  private constructor(
    private readonly options: SessionOptions,
    private document: SessionDocument,
  ) {}

  /**
   * Opens a session. If there is one already, closes it if it is `left`, the one of the bridge that served the scale
   * set before; rejects if it belongs to another program. May resolve a little after an abort; the caller closes the
   * session.
   */
  static async open(options: SessionOptions, left: string | null, signal: AbortSignal): Promise<MessageSession> {
    const { service, scaleSetId, log } = options;
    const open = (): Promise<SessionDocument> => openSession(options, signal);
    try {
      return new MessageSession(options, await open());
    } catch (error) {
      if (!isConflict(error) || left === null) throw error;
      log.info('Closing the session that an earlier bridge has left', { session: left });
      await service.closeSession(scaleSetId, left, signal);
      return new MessageSession(options, await open());
    }
  }

  get id(): string {
    return this.document.id;
  }

  /** The numbers at the opening of the session. */
  get statistics(): Statistics | undefined {
    return this.document.statistics;
  }

  /** Resolves with the next message, or with undefined if there is none for some time. */
  async next(capacity: number, signal: AbortSignal): Promise<Message | undefined> {
    const { service } = this.options;
    return await this.renewing(signal, () => service.nextMessage(this.document, this.last, capacity, signal));
  }

  /** Confirms a message, which GitHub repeats otherwise. */
  async confirm(message: Message, signal: AbortSignal): Promise<void> {
    await this.renewing(signal, () => this.options.service.deleteMessage(this.document, message.id, signal));
    this.last = Math.max(this.last, message.id);
  }

  /** Resolves with the ids of the requests that the scale set has got. */
  async acquire(requests: readonly number[], signal: AbortSignal): Promise<readonly number[]> {
    const { service, scaleSetId } = this.options;
    return await this.renewing(signal, () => service.acquireJobs(scaleSetId, this.document, requests, signal));
  }

  async close(signal: AbortSignal): Promise<void> {
    await this.options.service.closeSession(this.options.scaleSetId, this.id, signal);
  }

  /** Renews the token of the queue once if GitHub refuses it. */
  private async renewing<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isUnauthorized(error) || !(error instanceof GithubError)) throw error;
      const { service, scaleSetId } = this.options;
      const { statistics } = this.document;
      this.document = { ...(await service.renewSession(scaleSetId, this.id, signal)), statistics };
      return await work();
    }
  }
}

/**
 * Waits for the answer even after an abort, but not for long: GitHub may have opened the session already, and only its
 * answer has the id, without which nothing can close the session.
 */
async function openSession(
  { clock, service, scaleSetId, owner }: SessionOptions,
  signal: AbortSignal,
): Promise<SessionDocument> {
  signal.throwIfAborted();
  const waiting = linkSignals();
  let timer: Timer | undefined;
  const onAbort = (): void => {
    timer = clock.schedule(OPEN_AFTER_ABORT_MS, () =>
      waiting.abort(new Error('GitHub has not opened the session in time')),
    );
  };
  addAbortCallback(signal, onAbort);
  try {
    return await service.openSession(scaleSetId, owner, waiting.signal);
  } finally {
    removeAbortCallback(signal, onAbort);
    timer?.cancel();
  }
}
