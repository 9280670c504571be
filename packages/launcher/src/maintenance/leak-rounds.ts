/** Looks for leaked resources of one provider, round after round: the cloud tells nobody what was forgotten there. */

import { sleep, toDriverError, type Call, type DriverError, type LeakRound, type Provider } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { driverCall } from '../driver-call.js';
import { LeakedResources } from './leaked-resources.js';

/** From the end of a round to the next, milliseconds; and how long one may take. */
const INTERVAL_MS = 60_000;
const ROUND_TIMEOUT_MS = 300_000;

/** Hears if the cloud lists its resources. */
export interface RoundListener {
  listed(): void;
  listingFailed(error: DriverError): void;
}

/** Runs until the signal aborts. */
export async function runLeakRounds(
  context: LauncherContext,
  provider: Provider,
  listener: RoundListener,
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, store } = context;
  const log = context.log.with({ provider: provider.config.name });
  const round = new LeakedResources(context, provider.config.name, signal);
  // Launchers that were started together do not ask together.
  let waitMs = INTERVAL_MS * random.next();
  for (;;) {
    try {
      await sleep(clock, waitMs, signal);
    } catch {
      // Only the signal ends the sleep early.
      return;
    }
    waitMs = INTERVAL_MS;
    if (!store.complete) continue;
    const call: Call = { signal, deadline: clock.monotonic() + ROUND_TIMEOUT_MS, log };
    let isListed = false;
    const listed: LeakRound = {
      leaked: (resources) => {
        isListed = true;
        return round.leaked(resources);
      },
    };
    try {
      await driverCall(clock, 'the search for leaked resources', call, (bounded) =>
        provider.cleanupLeakedResources(listed, bounded),
      );
      isListed = true;
    } catch (error) {
      if (signal.aborted) return;
      const failure = toDriverError(error);
      if (!isListed) listener.listingFailed(failure);
      log.warn('Looking for leaked resources failed; it is tried again', { error: failure });
      waitMs = Math.max(INTERVAL_MS, failure.retryAfterMs ?? 0);
    }
    if (isListed) listener.listed();
  }
}
