/** The token of a login that all calls of a provider share. */

import type { Clock } from '../runtime/clock.js';
import { withDeadline } from '../runtime/deadline.js';
import { TimerQueue } from '../runtime/timer-queue.js';
import type { ApiClient } from './api-client.js';
import type { ApiCredentials, ApiOperation, Attempt, ErrorOf, Refusal } from './api-request.js';
import type { Call } from './call.js';
import { AbortedError, AuthError, DriverError, isDriverError, TransientError } from './errors.js';

/** Time limit of a login (ms). A login service answers within seconds. */
const LOGIN_TIMEOUT_MS = 30_000;
/** A token is renewed this long before it expires (ms), or after four fifths of its lifetime if that is later. */
const RENEW_BEFORE_MS = 300_000;
const RENEW_AFTER = 0.8;
/** Time between attempts to renew a token that is still valid (ms). */
const RENEWAL_INTERVAL_MS = 10_000;
/** Longest time without a login because the login service demanded a wait (ms). */
const MAX_PAUSE_MS = 60_000;

/** The result of a login. */
export interface Granted<T> {
  readonly token: T;
  /** Time for which the token is valid (ms). */
  readonly lifeMs: number;
  /** Status of the answer, for metrics; undefined if the login needed no remote call. */
  readonly status: number | undefined;
}

export interface TokenSourceOptions<T> {
  /** Returns the client, whose credentials are often this source. */
  readonly api: () => Pick<ApiClient<unknown>, 'logIn'>;
  readonly clock: Clock;
  readonly operation: ApiOperation;
  /** Names the login service in messages, e.g. `the login at https://login.example.org`. */
  readonly service: () => string;
  /**
   * Logs in. Each login must use a new credential object: those of vendors' libraries share a pending renewal without
   * end, and remember failures.
   */
  readonly logIn: (attempt: Attempt) => Promise<Granted<T>>;
  readonly errorOf: ErrorOf;
}

interface Held<T> {
  readonly token: T;
  readonly renewAt: number;
  readonly expiresAt: number;
}

/**
 * Obtains one token for all calls and renews it before it expires. A valid token is used while it is renewed, and as
 * long as the renewal fails. Every login ends at a time limit.
 */
export class TokenSource<T> implements ApiCredentials<T> {
  private held: Held<T> | undefined;
  private renewal: Promise<Held<T>> | undefined;
  /** Failure of the last login. */
  private failed: { readonly error: DriverError; readonly at: number } | undefined;
  private readonly timers: TimerQueue;

  constructor(private readonly options: TokenSourceOptions<T>) {
    this.timers = new TimerQueue(options.clock);
  }

  /** The last token; undefined before the first login. */
  get latest(): T | undefined {
    return this.held?.token;
  }

  /** Resolves with a valid token. Rejects with a `DriverError` whose outcome is `not-applied`. */
  async get(call: Call): Promise<T> {
    const now = this.options.clock.monotonic();
    const { held } = this;
    if (held !== undefined && now < held.renewAt) return held.token;
    if (held !== undefined && now < held.expiresAt) {
      if (this.renewal === undefined && now >= this.retryAt(RENEWAL_INTERVAL_MS)) {
        this.replace(call).catch((error: unknown) =>
          call.log.warn('A token could not be renewed; the present one is used until it expires', { error }),
        );
      }
      return held.token;
    }
    if (this.failed !== undefined && now < this.retryAt(0)) throw this.failed.error;
    const renewal = this.renewal ?? this.replace(call);
    const outcome = 'not-applied';
    const limits = {
      timers: this.timers,
      signal: call.signal,
      deadline: call.deadline,
      onDeadline: () => new TransientError(`${this.options.service()} has not answered yet`, { outcome }),
      onAbort: (cause: Error) => new AbortedError('aborted while waiting for a login', { outcome, cause }),
    };
    return (await withDeadline(limits, () => renewal)).token;
  }

  /** Discards a token that the cloud refused with status 401. Returns true if it did. */
  renew(token: T, { status }: Pick<Refusal, 'status'>): boolean {
    if (status === 401) this.refused(token);
    return status === 401;
  }

  /** Discards a token that the cloud refused. All calls that were refused with it share the next one. */
  refused(token: T): void {
    if (this.held?.token === token) this.held = undefined;
  }

  /** Returns the `Clock.monotonic` time from which the next login is allowed (ms). */
  private retryAt(intervalMs: number): number {
    if (this.failed === undefined) return -Infinity;
    const { error, at } = this.failed;
    return at + Math.min(Math.max(error.retryAfterMs ?? 0, intervalMs), MAX_PAUSE_MS);
  }

  private replace({ log }: Call): Promise<Held<T>> {
    const renewal = this.logIn({ signal: new AbortController().signal, deadline: Infinity, log }).finally(() => {
      if (this.renewal === renewal) this.renewal = undefined;
    });
    this.renewal = renewal;
    return renewal;
  }

  private async logIn(call: Call): Promise<Held<T>> {
    const { api, clock, errorOf, logIn, operation } = this.options;
    let retryAfterMs: number | undefined;
    try {
      const { token, lifeMs } = await api().logIn(
        { ...operation, name: this.options.service(), timeoutMs: LOGIN_TIMEOUT_MS, errorOf },
        call,
        (attempt) => logIn(attempt).finally(() => (retryAfterMs = attempt.http.retryAfterMs(clock.now()))),
      );
      const now = clock.monotonic();
      const renewAt = now + Math.max(lifeMs - RENEW_BEFORE_MS, lifeMs * RENEW_AFTER);
      this.failed = undefined;
      this.held = { token, renewAt, expiresAt: now + lifeMs };
      return this.held;
    } catch (error) {
      const failure = loginFailure(error, retryAfterMs);
      this.failed = { error: failure, at: clock.monotonic() };
      throw failure;
    }
  }
}

/** Returns the error of a login, which leaves nothing to clean up and whose answers describe no resource. */
function loginFailure(error: unknown, demandedMs: number | undefined): DriverError {
  if (!isDriverError(error)) throw error;
  const { code, message, retryAfterMs = demandedMs } = error;
  const options = { cause: error.cause, outcome: 'not-applied', retryAfterMs } as const;
  if (code === 'not-found') return new AuthError(message, options);
  if (code === 'timeout') return new TransientError(message, options);
  return error.outcome === 'not-applied' && error.retryAfterMs === retryAfterMs
    ? error
    : new DriverError(code, message, options);
}
