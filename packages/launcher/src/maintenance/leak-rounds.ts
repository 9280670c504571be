/** Searches one provider for leaked resources at regular intervals, since clouds do not report leaked resources. */

import type { Call, DriverError, Instance, LeakFilter, Provider } from '@nodepool/core';
import { sleep, toDriverError, driverCall } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { LeakedResources } from './leaked-resources.js';
import type { RecordComparison } from '../deletion/record-comparison.js';

/** Greatest wait before the first round, in milliseconds. Deletions by tag wait for that round. */
const FIRST_WAIT_MS = 10_000;
/** Pause between the end of a round and the start of the next, and the time limit of one round, in milliseconds. */
const INTERVAL_MS = 60_000;
const ROUND_TIMEOUT_MS = 300_000;

/** Receives the outcome of each listing of the cloud's resources. */
export interface RoundListener {
  listed(): void;
  /** `startedAt`: `Clock.monotonic` milliseconds. */
  listingFailed(error: DriverError, startedAt: number): void;
}

export interface LeakRoundsOptions {
  readonly context: LauncherContext;
  readonly provider: Provider;
  readonly listener: RoundListener;
  readonly comparison: RecordComparison;
  /** Lists the instances for the search and for other checks. */
  readonly listInstances: (call: Call) => Promise<readonly Instance[]>;
  /** Aborts when the search ends. */
  readonly signal: AbortSignal;
}

export async function runLeakRounds({
  context,
  provider,
  listener,
  comparison,
  listInstances,
  signal,
}: LeakRoundsOptions): Promise<void> {
  const { clock, random, store } = context;
  const log = context.log.with({ provider: provider.config.name });
  const round = new LeakedResources(context, provider.config.name, comparison, signal);
  // A random first wait spreads the calls of launchers that start at the same time.
  let waitMs = FIRST_WAIT_MS * random.next();
  for (;;) {
    try {
      await sleep(clock, waitMs, signal);
    } catch {
      // The sleep rejects only if the signal aborts.
      round.withdraw();
      return;
    }
    waitMs = INTERVAL_MS;
    if (!store.complete) continue;
    const startedAt = clock.monotonic();
    const call: Call = { signal, deadline: startedAt + ROUND_TIMEOUT_MS, log };
    let isListed = false;
    const listed: LeakFilter = {
      leaked: (resources) => {
        isListed = true;
        return round.leaked(resources);
      },
      listInstances,
    };
    try {
      await driverCall(clock, 'the search for leaked resources', call, (bounded) =>
        provider.cleanupLeakedResources(listed, bounded),
      );
      isListed = true;
      round.listed();
    } catch (error) {
      if (signal.aborted) {
        round.withdraw();
        return;
      }
      const failure = toDriverError(error);
      if (!isListed) listener.listingFailed(failure, startedAt);
      log.warn('The search for leaked resources failed; retrying', { error: failure });
      waitMs = Math.max(INTERVAL_MS, failure.retryAfterMs ?? 0);
    }
    if (isListed) listener.listed();
  }
}
