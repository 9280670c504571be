/**
 * The narrow API through which this driver uses its cloud, with only the calls that it needs.
 *
 * Every driver has such a file, which hides the cloud's SDK (here an object, or HTTP) and can be replaced in tests. It
 * applies the deadline of every call, converts failures to errors of core, and reports calls for the metrics.
 */

import {
  AbortedError,
  TimeoutError,
  TimerQueue,
  withDeadline,
  type ApiCall,
  type Call,
  type Clock,
  type RateLimiter,
} from '@nodepool/core';
import type { Readable } from 'node:stream';
import type { CloudDescription, CloudImage, CloudInstance, ImageSpec, InstanceSpec, Page } from '../cloud/types.js';
import { driverErrorOf, statusOf } from '../errors.js';

/**
 * The cloud. All calls reject with a `DriverError` that has an outcome: `AbortedError` if the call's signal aborts,
 * `TimeoutError` at its deadline.
 */
export interface ExampleCloudApi {
  describe(call: Call): Promise<CloudDescription>;
  /** Resolves once the cloud has accepted the creation; the instance may still be `building`. */
  createInstance(spec: InstanceSpec, call: Call): Promise<CloudInstance>;
  /** Resolves with the instance, which is `deleting` or `deleted`. */
  deleteInstance(id: string, call: Call): Promise<CloudInstance>;
  /** Resolves with one page; `marker` is the `next` of the previous page, or null for the first page. */
  listInstances(marker: string | null, call: Call): Promise<Page<CloudInstance>>;
  consoleOf(id: string, call: Call): Promise<string>;
  createImage(spec: ImageSpec, call: Call): Promise<CloudImage>;
  /** Streams an image's data, and opens them again to repeat it. Resolves once the cloud has verified them. */
  putImageData(id: string, data: () => Readable, call: Call): Promise<CloudImage>;
  deleteImage(id: string, call: Call): Promise<void>;
  listImages(marker: string | null, call: Call): Promise<Page<CloudImage>>;
}

/** Dependencies of both implementations. */
export interface CallContext {
  readonly clock: Clock;
  readonly onApiCall: (call: ApiCall) => void;
  /** Limits the calls to the configured rate; absent for no limit. */
  readonly limiter?: RateLimiter | undefined;
}

/** A kind of call, for messages and metrics. */
export interface Operation {
  readonly service: 'instances' | 'images' | 'cloud';
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly operation: string;
}

/** All kinds of calls. */
export const OPERATIONS = {
  describe: { service: 'cloud', method: 'GET', operation: 'describe' },
  createInstance: { service: 'instances', method: 'POST', operation: 'create' },
  deleteInstance: { service: 'instances', method: 'DELETE', operation: 'delete' },
  listInstances: { service: 'instances', method: 'GET', operation: 'list' },
  consoleOf: { service: 'instances', method: 'GET', operation: 'console' },
  createImage: { service: 'images', method: 'POST', operation: 'create' },
  putImageData: { service: 'images', method: 'PUT', operation: 'upload' },
  deleteImage: { service: 'images', method: 'DELETE', operation: 'delete' },
  listImages: { service: 'images', method: 'GET', operation: 'list' },
} as const satisfies Record<keyof ExampleCloudApi, Operation>;

/** Makes calls: applies the rate, reports the calls, and converts their errors. */
export class Caller {
  private readonly timers: TimerQueue;

  constructor(private readonly context: CallContext) {
    this.timers = new TimerQueue(context.clock);
  }

  /** Makes the call with `ask`, which may respond synchronously. */
  async run<T>(kind: Operation, call: Call, ask: () => T | Promise<T>): Promise<T> {
    const { clock, limiter } = this.context;
    if (limiter !== undefined) await this.bounded(kind, call, (signal) => limiter.acquire(signal), 'not-applied');
    if (call.signal.aborted) throw abortedError(kind, call.signal, 'not-applied');
    const startedAt = clock.monotonic();
    try {
      const answer = ask();
      const result = answer instanceof Promise ? await answer : answer;
      this.report(kind, startedAt, 200);
      limiter?.settled();
      return result;
    } catch (error) {
      this.report(kind, startedAt, statusOf(error));
      const failure = driverErrorOf(nameOf(kind), error);
      limiter?.settled(failure);
      throw failure;
    }
  }

  /**
   * Settles as `start` does, or rejects if the call's signal aborts or its deadline passes; the signal passed to
   * `start` aborts then too. `outcome` is the outcome of an abandoned call.
   */
  bounded<T>(
    kind: Operation,
    call: Call,
    start: (signal: AbortSignal) => Promise<T>,
    outcome: 'not-applied' | 'unknown' = 'unknown',
  ): Promise<T> {
    return withDeadline(
      {
        timers: this.timers,
        signal: call.signal,
        deadline: call.deadline,
        onDeadline: () => new TimeoutError(`${nameOf(kind)}: no answer before the deadline`, { outcome }),
        onAbort: () => abortedError(kind, call.signal, outcome),
      },
      start,
    );
  }

  private report({ service, method, operation }: Operation, startedAt: number, status: number | string): void {
    const { clock, onApiCall } = this.context;
    onApiCall({ service, method, operation, durationMs: clock.monotonic() - startedAt, status });
  }
}

/** Returns the name of a call, e.g. `example cloud, instances: create`. */
export function nameOf({ service, operation }: Operation): string {
  return `example cloud, ${service}: ${operation}`;
}

function abortedError(kind: Operation, signal: AbortSignal, outcome: 'not-applied' | 'unknown'): AbortedError {
  return new AbortedError(`${nameOf(kind)}: it was aborted`, { cause: signal.reason, outcome });
}
