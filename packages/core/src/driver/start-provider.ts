/** Starts a provider for any program, retrying until it succeeds. */

import type { Metrics } from '../runtime/metrics.js';
import type { Logger } from '../runtime/logger.js';
import { backOffMs } from '../runtime/back-off.js';
import { sleep, type Clock } from '../runtime/clock.js';
import { untilAborted } from '../runtime/deadline.js';
import type { RandomSource } from '../runtime/random.js';
import type { TaskSupervisor } from '../runtime/tasks.js';
import type { ApiCall, Provider, ProviderContext } from './api.js';
import { API_ANSWERS, API_CALLS } from './api-metrics.js';
import { toDriverError, type DriverError } from './errors.js';

export interface StartProviderContext extends Pick<ProviderContext, 'nodeSupply' | 'loginScan' | 'onRetry'> {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Logger whose lines name the provider. */
  readonly log: Logger;
  readonly tasks: TaskSupervisor;
  /** Receives every call of the provider. */
  readonly metrics: Metrics;
  /** Receives every call of the provider that has ended. */
  readonly onApiCall?: ((call: ApiCall) => void) | undefined;
  /** Called after each failed start. */
  readonly onFailure?: (error: DriverError) => void;
}

/** Resolves with true once the provider is started, or with false if the signal aborts first. */
export async function startProvider(
  provider: Provider,
  context: StartProviderContext,
  signal: AbortSignal,
): Promise<boolean> {
  const { clock, random, log, tasks, metrics, nodeSupply, loginScan, onRetry } = context;
  const { name } = provider.config;
  const stopped = (): boolean => signal.aborted;
  let lastDefect: string | undefined;
  for (let failures = 1; !stopped(); failures += 1) {
    try {
      const starting = provider.start({
        clock,
        random,
        log,
        tasks,
        nodeSupply,
        loginScan,
        onRetry,
        onApiCall: (call) => {
          const { service, method, operation, durationMs, status } = call;
          context.onApiCall?.(call);
          metrics.observe(API_CALLS, { provider: name, service, method, operation }, durationMs);
          metrics.count(API_ANSWERS, { provider: name, service, status: String(status ?? 'none') });
        },
      });
      // A start may never end.
      await untilAborted(starting, signal);
      return !stopped();
    } catch (error) {
      if (stopped()) return false;
      const failure = toDriverError(error);
      const waitMs = backOffMs(failures, failure, random);
      const seconds = waitMs / 1000;
      // Log the stack of an unexpected error once, not at every attempt.
      const isNewDefect = failure.code === 'unexpected' && failure.message !== lastDefect;
      if (isNewDefect) lastDefect = failure.message;
      log.error(
        'The provider could not be started; retrying',
        isNewDefect ? failure : undefined,
        isNewDefect ? { seconds } : { seconds, reason: failure.message },
      );
      context.onFailure?.(failure);
      // Only the signal can interrupt the wait, and it also ends the loop.
      await sleep(clock, waitMs, signal).catch(() => undefined);
    }
  }
  return false;
}
