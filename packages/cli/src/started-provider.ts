import type { Call, Clock, Logger, Provider, RandomSource } from '@nodepool/core';
import {
  SupervisedProvider,
  TaskSupervisor,
  TimeoutError,
  TimerQueue,
  silentMetrics,
  withDeadline,
} from '@nodepool/core';
import { CommandError } from './command-context.js';

export interface QueryContext {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Aborts when the user interrupts the command. */
  readonly interrupted: AbortSignal;
}

/** Starts the provider, runs `query`, and stops the provider. Rejects if the cloud does not answer in time. */
export async function withStartedProvider<T>(
  { clock, random, log, interrupted }: QueryContext,
  provider: Provider,
  timeoutMs: number,
  query: (call: Call) => Promise<T>,
): Promise<T> {
  const tasks = new TaskSupervisor(clock, (task, error) => log.error(`The task "${task}" failed`, error));
  const deadline = clock.monotonic() + timeoutMs;
  const limits = {
    timers: new TimerQueue(clock),
    signal: interrupted,
    deadline,
    onDeadline: () => {
      const message = `the cloud has not answered for ${timeoutMs / 1000} s`;
      return new CommandError(message, { cause: new TimeoutError(message) });
    },
  };
  const supervised = new SupervisedProvider(provider, { clock, random, log, tasks, metrics: silentMetrics });
  try {
    return await withDeadline(limits, async (signal) => {
      await provider.start({ clock, random, log, tasks, onApiCall: () => undefined });
      signal.throwIfAborted();
      return query({ signal, deadline, log });
    });
  } finally {
    // Without its end, a driver's open watches would keep the process alive.
    await supervised.stop();
  }
}
