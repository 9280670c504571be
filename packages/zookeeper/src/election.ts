/** An office that one process holds at a time: the holder of a lock; see `Election` for what it promises. */

import type { ZooKeeper } from './api.js';
import { sleep, systemClock, type Clock } from './clock.js';
import { isZooKeeperError } from './errors.js';
import { lockRecipe, type LockRecipeOptions } from './lock.js';
import { untilAborted } from './deadline.js';
import type { Election, HeldLock, LockRecipe } from './recipes-api.js';
import { warnProcess } from './warn.js';

export interface ElectionOptions extends LockRecipeOptions {
  /** Locks of this client, if there are some already. */
  readonly locks?: LockRecipe;
  /** Waiting time after a failure before it runs for the office again, milliseconds. Default 1000. */
  readonly retryMs?: number;
  /** Told what went wrong, in running for the office or in `onElected`. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void;
}

/** The election whose contenders are below `path`. A new term begins only when `onElected` of the last is done. */
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
    if (this.loop !== undefined) throw new Error(`the election ${this.path} is running already`);
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

  /** One term. Rejects when `onElected` does. */
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
