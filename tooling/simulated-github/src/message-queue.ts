/** The messages of one scale set. The service repeats a message until the client deletes it. */

import type { JsonObject } from '@nodepool/core';
import { MAX_MESSAGES, type GithubState } from './settings.js';

/** An event of a job; `messageType` is e.g. `JobAssigned`. */
export type JobMessage = JsonObject & { readonly messageType: string };

export interface QueuedMessage {
  readonly id: number;
  readonly jobs: readonly JobMessage[];
  /** Number of answers that contained the message. */
  deliveries: number;
}

export class MessageQueue {
  private pending: JobMessage[] = [];
  private messages: QueuedMessage[] = [];
  private lastId = 0;
  private readonly waiters = new Set<() => void>();

  constructor(private readonly state: GithubState) {}

  /** Messages that the client has not deleted. */
  get undeleted(): readonly QueuedMessage[] {
    return this.messages;
  }

  add(message: JobMessage): void {
    this.pending.push(message);
    this.wake();
  }

  /** Returns the first undeleted message after `lastId`, or undefined if there is none. */
  next(lastId: number): QueuedMessage | undefined {
    const found = this.messages.find(({ id }) => id > lastId);
    if (found !== undefined) return found;
    if (this.pending.length === 0) return undefined;
    this.lastId += 1;
    const message = { id: this.lastId, jobs: this.pending.splice(0, MAX_MESSAGES), deliveries: 0 };
    this.messages.push(message);
    return message.id > lastId ? message : undefined;
  }

  /** Deletes a message. Returns false if it does not exist. */
  delete(id: number): boolean {
    const count = this.messages.length;
    this.messages = this.messages.filter((message) => message.id !== id);
    return this.messages.length < count;
  }

  /** Ends all waits. */
  wake(): void {
    for (const waiter of this.waiters) waiter();
  }

  /** Resolves at the next change, after `ms`, or when the signal aborts. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.waiters.delete(done);
        timer.cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = this.state.clock.schedule(ms, done, { background: true });
      signal.addEventListener('abort', done);
      this.waiters.add(done);
    });
  }
}
