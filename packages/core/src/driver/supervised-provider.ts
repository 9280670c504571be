/**
 * Isolates a program from the driver of one provider: starts the provider until that succeeds, bounds each call, and
 * stops it. A driver that throws instead of rejecting, or that never answers, affects only the caller.
 */

import { backOffMs } from '../runtime/back-off.js';
import { sleep, type Clock } from '../runtime/clock.js';
import { LimitedWork, untilAborted } from '../runtime/deadline.js';
import type { Logger } from '../runtime/logger.js';
import type { Metrics } from '../runtime/metrics.js';
import type { RandomSource } from '../runtime/random.js';
import type { TaskSupervisor } from '../runtime/tasks.js';
import { TimerQueue } from '../runtime/timer-queue.js';
import { API_ANSWERS, API_CALLS } from './api-metrics.js';
import type { ApiCall, Provider, ProviderContext } from './api.js';
import type { Call } from './call.js';
import { AbortedError, DriverError, TimeoutError, toDriverError } from './errors.js';
import { oldestCall, onOpenCall, type OpenCall } from './open-calls.js';
import type { ProviderConfig } from './provider-config.js';
import { removeSecrets } from './secrets.js';

/** Time limit for stopping a provider, milliseconds. Drivers based on the frameworks need at most a third of it. */
const STOP_TIMEOUT_MS = 30_000;
/**
 * Grace period after the deadline of a call, in milliseconds, for the driver to report the timeout itself: its error
 * has more details.
 */
const GRACE_MS = 1000;

/** The parts of a program that the supervision of its providers depends on. */
export interface SupervisionContext {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Logger whose lines name the provider. */
  readonly log: Logger;
  readonly tasks: TaskSupervisor;
  /** Receives every call of the provider. */
  readonly metrics: Metrics;
  /** Receives every call of the provider for traces; undefined while tracing is off. */
  readonly traces?: { apiCall(provider: string, call: ApiCall): void } | undefined;
}

type OptionalParts = 'checkInstances' | 'observeListing' | 'nodeSupply' | 'loginScan' | 'backingNodes' | 'onRetry';

/** Services and listeners that a program passes to a provider at its start. */
export interface StartOptions extends Partial<Pick<ProviderContext, OptionalParts>> {
  /** Receives every call of the provider that has ended. */
  readonly onApiCall?: ((call: ApiCall) => void) | undefined;
  /** Called at the start of each call, if the driver tells. */
  readonly onOpenCall?: (() => void) | undefined;
  /** Called after each failed start. */
  readonly onFailure?: (error: DriverError) => void;
}

/** One queue per clock for the deadlines of all calls, which are rarely reached. */
const timersOf = new WeakMap<Clock, TimerQueue>();

export class SupervisedProvider {
  private onApiCall: ((call: ApiCall) => void) | undefined;

  constructor(
    readonly provider: Provider,
    private readonly context: SupervisionContext,
  ) {}

  get config(): ProviderConfig {
    return this.provider.config;
  }

  /** The call that has waited longest for its answer; undefined if there is none, or the driver does not tell. */
  get oldestCall(): OpenCall | undefined {
    return this.onApiCall === undefined ? undefined : oldestCall(this.onApiCall);
  }

  /** Resolves with true once the provider is started, or with false if the signal aborts first. */
  async start(options: StartOptions, signal: AbortSignal): Promise<boolean> {
    const { clock, random, log, tasks, metrics } = this.context;
    const { checkInstances, observeListing, nodeSupply, loginScan, backingNodes, onRetry } = options;
    const { name } = this.config;
    const stopped = (): boolean => signal.aborted;
    const onApiCall = (call: ApiCall): void => {
      const { service, method, operation, durationMs, status } = call;
      options.onApiCall?.(call);
      this.context.traces?.apiCall(name, call);
      metrics.observe(API_CALLS, { provider: name, service, method, operation }, durationMs);
      metrics.count(API_ANSWERS, { provider: name, service, status: String(status ?? 'none') });
    };
    this.onApiCall = onApiCall;
    if (options.onOpenCall !== undefined) onOpenCall(onApiCall, options.onOpenCall);
    let lastDefect: string | undefined;
    for (let failures = 1; !stopped(); failures += 1) {
      try {
        const starting = this.provider.start({
          clock,
          random,
          log,
          tasks,
          checkInstances,
          observeListing,
          nodeSupply,
          loginScan,
          backingNodes,
          onRetry,
          onApiCall,
        });
        // A start may never end.
        await untilAborted(starting, signal);
        return !stopped();
      } catch (error) {
        if (stopped()) return false;
        const failure = toDriverError(error);
        const waitMs = backOffMs(failures, failure, random);
        const wait = { retry_in_ms: Math.round(waitMs) };
        // Log the stack of an unexpected error once, not at every attempt.
        const isNewDefect = failure.code === 'unexpected' && failure.message !== lastDefect;
        if (isNewDefect) lastDefect = failure.message;
        log.error(
          'The provider could not be started; retrying',
          isNewDefect ? failure : undefined,
          isNewDefect ? wait : { ...wait, reason: failure.message },
        );
        options.onFailure?.(failure);
        // Only the signal can interrupt the wait, and it also ends the loop.
        await sleep(clock, waitMs, signal).catch(() => undefined);
      }
    }
    return false;
  }

  /** Stops the provider. Resolves once it has ended, or after a limited time with an error in the log. */
  stop(): Promise<void> {
    return this.wait('the end', async () => {
      this.provider.stop();
      await this.provider.join();
    });
  }

  /** Waits for a limited time, because a driver that does not stop must not delay the other providers. */
  async wait(what: string, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.context;
    const { name, driver } = this.config;
    const call = { signal: new AbortController().signal, deadline: clock.monotonic() + STOP_TIMEOUT_MS, log };
    try {
      await driverCall(clock, `${what} of provider ${name}`, call, work);
    } catch (error) {
      const message = 'The driver did not stop the provider in time; the program continues without waiting';
      log.error(message, toDriverError(error), { driver });
    }
  }
}

/**
 * Resolves as `work` does. Rejects with the error of `work` (converted to a `DriverError` if it is not an `Error`),
 * with a `TimeoutError` shortly after the deadline, or with an `AbortedError` once the signal or one of `others`
 * aborts; in the last two cases the signal passed to `work` aborts. `what` names the work in messages, e.g.
 * `the launch of node 0000000001`.
 */
export function driverCall<T>(
  clock: Clock,
  what: string,
  call: Call,
  work: (call: Call) => Promise<T>,
  others?: readonly AbortSignal[],
): Promise<T> {
  return new DriverCall(clock, what, call, others).run(work);
}

/** A call of a driver that ends for its caller at the deadline or on abort, whatever the driver does. */
export class DriverCall {
  private readonly limited: LimitedWork;

  constructor(
    clock: Clock,
    what: string,
    private readonly call: Call,
    others: readonly AbortSignal[] = [],
  ) {
    let timers = timersOf.get(clock);
    if (timers === undefined) timersOf.set(clock, (timers = new TimerQueue(clock)));
    this.limited = new LimitedWork({
      timers,
      signal: call.signal,
      others,
      deadline: call.deadline + GRACE_MS,
      onDeadline: () => new TimeoutError(`${what} did not end in time, and the driver did not say why`),
      onAbort: (cause: Error) => new AbortedError(`${what} was abandoned`, { cause }),
    });
  }

  run<T>(work: (call: Call) => Promise<T>): Promise<T> {
    const { deadline, log } = this.call;
    return this.limited.run((signal) => work({ signal, deadline, log })).catch(throwAsError);
  }

  /** Rejects with the error, and aborts the signal passed to `work`, unless the call has ended. */
  end(error: Error): void {
    this.limited.end(error);
  }
}

/** Errors of the program itself, such as a lost lock, pass unchanged through the driver. */
function throwAsError(error: unknown): never {
  if (error instanceof DriverError) throw removeSecrets(error);
  throw error instanceof Error ? error : removeSecrets(toDriverError(error));
}
