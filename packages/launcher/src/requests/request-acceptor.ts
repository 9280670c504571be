/** Tracks the requests that a pool serves, from the scheduler's decision until everything held for them is released. */

import { Latch, TaskOrigin } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import type { Refusal, RequestActivity } from '@nodepool/status';
import { aboutRequest, acceptRequest, declineRequest, requeueRequest, type ScheduledRequest } from './acceptance.js';
import type { Pool } from '../pool/pool.js';
import { RequestFulfilment } from './request-fulfilment.js';
import type { ReportOutcome } from './request-outcome.js';
import type { Termination } from './termination.js';

/** Delay before a request is retried after an error without a retry time, milliseconds. */
const FAILED_DELAY_MS = 10_000;
/** Longest delay before a request is retried after a refused hand-over, milliseconds; much longer than a round trip. */
const MAX_COLLISION_DELAY_MS = 2000;

export class RequestAcceptor {
  /** By request; undefined until it is accepted. */
  private readonly handlers = new Map<string, RequestFulfilment | undefined>();
  /** Ready nodes that are being allocated. */
  private readonly claimed = new Set<string>();
  private readonly isIdle = new Latch(true);
  private readonly isRecorded = new Latch(true);
  private readonly origin = new TaskOrigin();
  private recording = 0;
  private stopped = false;

  constructor(
    private readonly pool: Pool,
    private readonly report: ReportOutcome,
  ) {}

  /** Number of requests whose records are being written. */
  get accepting(): number {
    return this.recording;
  }

  /** Returns true if a ready node is being allocated to a request. */
  claims(nodeId: string): boolean {
    return this.claimed.has(nodeId);
  }

  activity(): RequestActivity[] {
    return [...this.handlers.values()].flatMap((handler) => handler?.activity() ?? []);
  }

  /** Ends the work on a request because its requestor has deleted it. */
  cancel(requestId: string): void {
    this.handlers.get(requestId)?.cancel();
  }

  /** Resolves once the records of all accepted requests are written and confirmed. */
  recorded(): Promise<void> {
    return this.isRecorded.wait();
  }

  /** Ends all work, including that on requests whose records are being written. */
  release(): void {
    this.stopped = true;
    for (const handler of this.handlers.values()) handler?.stop();
  }

  /** Resolves once every request is completed or released. */
  idle(): Promise<void> {
    return this.isIdle.wait();
  }

  /** Takes the request through acceptance and the stages after it. */
  serve(scheduled: ScheduledRequest): void {
    const { entry, hold, permit } = scheduled;
    this.track(`request ${entry.id}`, entry, async () => {
      const recorded = this.claim(scheduled);
      try {
        const accepted = await acceptRequest(this.pool, scheduled);
        // The records count from here on.
        hold?.release();
        if (accepted === undefined) return undefined;
        const handler = new RequestFulfilment(this.pool, scheduled, accepted, this.report);
        this.handlers.set(entry.id, handler);
        if (this.pool.context.store.requests.get(entry.id) === undefined) handler.cancel();
        if (this.stopped) handler.stop();
        return await handler.run(recorded);
      } finally {
        recorded();
        hold?.release();
        permit.release();
      }
    });
  }

  decline(entry: RequestEntry, refusal: Refusal): void {
    this.track(`decline request ${entry.id}`, entry, async () => {
      await declineRequest(this.pool, entry, refusal);
      return undefined;
    });
  }

  requeue(entry: RequestEntry, reason: string): void {
    this.track(`requeue request ${entry.id}`, entry, async () => {
      await requeueRequest(this.pool, entry, reason);
      return undefined;
    });
  }

  /** Claims the ready nodes of the allocation. The returned function ends the claim once the records are written. */
  private claim({ entry, allocation }: ScheduledRequest): () => void {
    const nodes = allocation.nodes.flatMap((node) => (node.kind === 'new' ? [] : [node.entry.id]));
    for (const id of nodes) this.claimed.add(id);
    this.recording += 1;
    this.isRecorded.close();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      for (const id of nodes) this.claimed.delete(id);
      this.recording -= 1;
      if (this.recording === 0) this.isRecorded.open();
      this.report(entry.id, { kind: 'recorded' });
    };
  }

  private track(task: string, entry: RequestEntry, work: () => Promise<Termination | undefined>): void {
    const { pool } = this;
    this.handlers.set(entry.id, undefined);
    this.isIdle.close();
    pool.context.timelines.accepting(entry.id, pool.name);
    pool.context.tasks.run(
      task,
      async () => {
        let retryAfterMs = FAILED_DELAY_MS;
        try {
          retryAfterMs = this.collisionDelayMs(await work());
        } catch (error) {
          if (!isZooKeeperError(error)) throw error;
          // The caches will show the result of the write.
          pool.log.warn('ZooKeeper failed; the request will be retried', {
            ...aboutRequest(pool, entry),
            error,
          });
        } finally {
          this.handlers.delete(entry.id);
          if (this.handlers.size === 0) this.isIdle.open();
          pool.context.timelines.released(entry.id, pool.name);
          this.report(entry.id, { kind: 'ended', retryAfterMs });
        }
      },
      () => aboutRequest(pool, entry),
      this.origin,
    );
  }

  /** Returns a random delay after a refused hand-over: two requests that refuse each other must not retry together. */
  private collisionDelayMs(termination: Termination | undefined): number {
    if (termination?.kind !== 'unconfirmed' || !termination.isHandOver) return 0;
    return Math.ceil(this.pool.context.random.next() * MAX_COLLISION_DELAY_MS);
  }
}
