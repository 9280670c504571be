/** Leader election: the holder of a lock is the leader. See `Election` for the contract. */

import type { ZooKeeper } from './api.js';
import { sleep, systemClock, type Clock } from './clock.js';
import { isZooKeeperError } from './errors.js';
import { lockRecipe, type LockRecipeOptions } from './lock.js';
import { untilAborted } from './deadline.js';
import type { Election, HeldLock, LockRecipe } from './recipes-api.js';
import { warnProcess } from './warn.js';

export interface ElectionOptions extends LockRecipeOptions {
  /** The client's existing lock recipe. Default: a new one. */
  readonly locks?: LockRecipe;
  /** Delay between a failure and the next attempt, milliseconds. Default 1000. */
  readonly retryMs?: number;
  /** Called with the errors of attempts and of `onElected`. Default: a process warning. */
  readonly onError?: (error: unknown) => void;
}

/**
 * Creates an election whose contenders are children of `path`. A new term begins only after `onElected` has settled for
 * the previous one.
 *
 * @example
 * const leader = election(zk, '/app/leader');
 * leader.run(async (term) => {
 *   while (!term.aborted) await work(term);
 * });
 */
export function election(zk: ZooKeeper, path: string, options: ElectionOptions = {}): Election {
  return new LockElection(options.locks ?? lockRecipe(zk, options), path, options);
}

class LockElection implements Election {
  private readonly clock: Clock;
  private readonly stop = new AbortController();
  private lock: HeldLock | undefined;
  private loop: Promise<void> | undefined;

  constructor(
    private readonly locks: LockRecipe,
    private readonly path: string,
    private readonly options: ElectionOptions,
  ) {
    this.clock = options.clock ?? systemClock;
  }

  get elected(): boolean {
    return this.lock !== undefined && !this.lock.lost.aborted;
  }

  run(onElected: (term: AbortSignal) => Promise<void> | void): void {
    if (this.loop !== undefined) throw new Error(`the election ${this.path} is already running`);
    this.loop = this.campaign(onElected);
  }

  async close(): Promise<void> {
    this.stop.abort(new Error(`the election ${this.path} was closed`));
    await Promise.all([this.lock?.release(), this.loop]);
  }

  private async campaign(onElected: (term: AbortSignal) => Promise<void> | void): Promise<void> {
    const { signal } = this.stop;
    while (!signal.aborted) {
      try {
        const { identifier } = this.options;
        const lock = await this.locks.acquire(this.path, {
          signal,
          watchContender: true,
          ...(identifier === undefined ? {} : { identifier }),
        });
        await this.serve(lock, onElected);
      } catch (error) {
        if (this.isClosed() || isZooKeeperError(error, 'closed')) return;
        this.report(error);
        await sleep(this.clock, this.options.retryMs ?? 1000, signal).catch(() => undefined);
      }
    }
  }

  /** Runs one term. Rejects if `onElected` does. */
  private async serve(lock: HeldLock, onElected: (term: AbortSignal) => Promise<void> | void): Promise<void> {
    this.lock = lock;
    try {
      if (this.isClosed()) return;
      await onElected(lock.lost);
      await untilOver(lock.lost);
    } finally {
      this.lock = undefined;
      await lock.release();
    }
  }

  private isClosed(): boolean {
    return this.stop.signal.aborted;
  }

  private report(error: unknown): void {
    (this.options.onError ?? warnProcess)(error);
  }
}

function untilOver(term: AbortSignal): Promise<void> {
  return untilAborted(new Promise<void>(() => undefined), [term]).catch(() => undefined);
}
