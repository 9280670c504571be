/**
 * The client through which all calls of a driver go, whatever its transport: rate, deadlines, metrics, redirects,
 * messages without secrets that name the host, the status and the content type of an answer.
 */

import type { Clock } from '../runtime/clock.js';
import type { Logger } from '../runtime/logger.js';
import { TimerQueue } from '../runtime/timer-queue.js';
import type { ApiCall } from './api.js';
import type { Call } from './call.js';
import { toDriverError, type DriverError } from './errors.js';
import { HttpExchange } from './http-exchange.js';
import { RateLimiter } from './rate-limiter.js';
import { removeSecrets } from './secrets.js';
import { GuardedCalls } from './state-machine/guarded-calls.js';

/** The kind of a call, for metrics. */
export type ApiOperation = Pick<ApiCall, 'service' | 'method' | 'operation'>;

export interface ApiClientOptions {
  readonly clock: Clock;
  readonly onApiCall: (call: ApiCall) => void;
  /** Rate of the calls that are made after `turn`. Default: not limited. */
  readonly callsPerSecond?: number;
  /** Returns the passwords and tokens in use, which are removed from all texts of errors. */
  readonly secrets?: () => readonly (string | undefined)[];
}

export interface ApiRequest extends ApiOperation {
  /** Name of the call in messages, e.g. `compute: POST servers`. */
  readonly name: string;
  /** Time limit (ms) in addition to the deadline of the call. */
  readonly timeoutMs: number;
  /**
   * Returns the `DriverError` for a rejection of the transport or for an error answer. `now` is the time at the answer
   * on the cloud's clock (ms since the epoch), for dates in it.
   */
  readonly errorOf: (error: unknown, now: number) => DriverError;
  /** False if the result says nothing about the rate of the API, e.g. for a login at another service. Default true. */
  readonly isPaced?: boolean;
}

/** A call in progress. */
export interface Attempt {
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Sends the HTTP messages of the call. */
  readonly http: HttpExchange;
}

export class ApiClient {
  readonly limiter: RateLimiter;
  private readonly guarded: GuardedCalls;

  constructor(private readonly options: ApiClientOptions) {
    this.guarded = new GuardedCalls(new TimerQueue(options.clock));
    this.limiter = new RateLimiter(options.clock, options.callsPerSecond ?? Infinity);
  }

  /**
   * Resolves when the rate allows the next call, with a deadline that moves by the time of the wait: if many calls
   * wait, each would otherwise be sent too late to get an answer in time.
   */
  async turn({ signal, deadline, log }: Call): Promise<Call> {
    const { clock } = this.options;
    const waitingSince = clock.monotonic();
    await this.limiter.acquire(signal);
    return { signal, log, deadline: deadline + clock.monotonic() - waitingSince };
  }

  /**
   * Makes one call and reports it to the metrics, unless its result has no status because it needed no remote call.
   * Rejects with a `DriverError` that has an outcome, immediately if the call's signal aborts, if its deadline expires,
   * or at `stop`.
   */
  async send<T extends { readonly status: number | undefined }>(
    request: ApiRequest,
    call: Call,
    work: (attempt: Attempt) => Promise<T>,
  ): Promise<T> {
    const { clock, onApiCall } = this.options;
    const { service, method, operation, name, timeoutMs, isPaced = true } = request;
    const http = new HttpExchange(name);
    const startedAt = clock.monotonic();
    // A spread would evaluate the getters of a state machine's call.
    const bounded: Call = {
      signal: call.signal,
      log: call.log,
      deadline: Math.min(call.deadline, startedAt + timeoutMs),
    };
    let status: ApiCall['status'];
    let wasMade = true;
    try {
      const result = await this.guarded.make(name, bounded, async ({ signal }) => {
        try {
          return await work({ signal, log: call.log, http });
        } catch (error) {
          throw http.refusal ?? request.errorOf(error, http.timeOfAnswer(clock.now()));
        }
      });
      ({ status } = result);
      wasMade = status !== undefined;
      if (isPaced) this.limiter.settled();
      return result;
    } catch (error) {
      const failure = this.explained(error, http);
      status = failure.code;
      if (isPaced) this.limiter.settled(failure);
      throw failure;
    } finally {
      const { host } = http;
      if (wasMade) onApiCall({ service, method, operation, host, durationMs: clock.monotonic() - startedAt, status });
    }
  }

  /**
   * Returns the error without secrets, with the host, the status and the content type of the answer in its message.
   */
  explained(error: unknown, http: HttpExchange): DriverError {
    return explained(toDriverError(error), http, this.options.secrets?.());
  }

  /** Runs work of several calls. Rejects like `send`. */
  within<T>(what: string, call: Call, work: (call: Call) => Promise<T>): Promise<T> {
    return this.guarded.make(what, call, work);
  }

  /** Aborts all calls in progress. */
  stop(): void {
    this.guarded.stop();
  }
}

/**
 * Removes secrets from an error, in place, and adds the host, the status and the content type of the answer to its
 * message.
 */
export function explained(
  error: DriverError,
  http: HttpExchange,
  secrets?: readonly (string | undefined)[],
): DriverError {
  const failure = removeSecrets(error, secrets);
  failure.message = http.explain(failure.message);
  return failure;
}
