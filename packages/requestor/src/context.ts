/** Dependencies shared by the parts of a requestor. */

import { setMaxListeners } from 'node:events';
import { linkSignals, sleep, type Clock, type Logger, type RandomSource } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import { isZooKeeperError, type LockRecipe, type ZooKeeper, type ZooKeeperErrorCode } from '@nodepool/zookeeper';
import type { WaitOptions } from './api.js';
import { RequestTimeoutError } from './errors.js';
import type { PoolRegistry } from './pools.js';

export interface RequestorContext {
  readonly zooKeeper: ZooKeeper;
  /** Never started: nothing is cached, every read goes to the server. */
  readonly store: Store;
  readonly locks: LockRecipe;
  readonly pools: PoolRegistry;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Ids of requests that this process has submitted and not ended. */
  readonly own: Set<string>;
  /** Aborts when the requestor is closed. */
  readonly closing: AbortSignal;
}

/** Delay before a call to ZooKeeper is repeated, milliseconds. A call itself waits for a connection. */
export const RETRY_MS = 100;

/** Errors after which a call can succeed if it is repeated. */
const TRANSIENT: readonly ZooKeeperErrorCode[] = [
  'connection-lost',
  'outcome-unknown',
  'session-lost',
  'session-moved',
  'timeout',
  'overloaded',
  'throttled',
];

export function isTransient(error: unknown): boolean {
  return TRANSIENT.some((code) => isZooKeeperError(error, code));
}

/**
 * Waits before a call is repeated. Rejects with the error if repeating cannot help, and with the reason of the signal.
 */
export async function pauseAfter(context: RequestorContext, error: unknown, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!isTransient(error)) throw error;
  await sleep(context.clock, RETRY_MS, signal);
}

/**
 * Returns a signal that aborts at the deadline, with the caller's signal, and when the requestor is closed. Call `end`
 * when the work is done.
 */
export function startLimits(
  { clock, closing }: RequestorContext,
  what: string,
  { signal, timeoutMs = Infinity }: WaitOptions,
): { readonly signal: AbortSignal; readonly end: () => void } {
  const deadline = new AbortController();
  const timer =
    timeoutMs === Infinity
      ? undefined
      : clock.schedule(timeoutMs, () => deadline.abort(new RequestTimeoutError(what, timeoutMs)));
  const linked = linkSignals(closing, deadline.signal, ...(signal === undefined ? [] : [signal]));
  // One listener for each call that is in progress.
  setMaxListeners(Infinity, linked.signal);
  const end = (): void => {
    timer?.cancel();
    linked.unlink();
  };
  return { signal: linked.signal, end };
}

/** Runs `work` with the signal of `startLimits`. Rejects with the reason of the signal if that aborts first. */
export async function withLimits<T>(
  context: RequestorContext,
  what: string,
  options: WaitOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, end } = startLimits(context, what, options);
  try {
    signal.throwIfAborted();
    return await work(signal);
  } catch (error) {
    // A call that the signal ended rejects with another error, so the reason of the signal is thrown instead.
    signal.throwIfAborted();
    throw error;
  } finally {
    end();
  }
}
