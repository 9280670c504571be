/** HTTP calls to GitHub: deadline, size of the answer, redirects, and waits that GitHub asks for. */

import {
  ErrorStatus,
  fetchAnswer,
  HttpExchange,
  isJsonObject,
  networkCauseOf,
  notJson,
  reasonOf,
  shortened,
  sleep,
  TimerQueue,
  withDeadline,
  type Clock,
  type FetchedAnswer,
  type JsonValue,
} from '@nodepool/core';
import { GithubError } from './errors.js';

/** Longest answer: a list of all runners of an organization (bytes). */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;
const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TEXT = 300;
/** Wait after a refusal for too many calls that names no time, milliseconds. */
const THROTTLED_MS = 10_000;

export interface HttpCall {
  /** Names the call in messages and metrics, e.g. `generateJitConfig`. */
  readonly operation: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly json?: JsonValue;
  /** Default 30 s. */
  readonly timeoutMs?: number;
  /** Receives the time of the answer on GitHub's clock, milliseconds since the epoch. */
  readonly onTime?: (now: number) => void;
}

export interface HttpAnswer {
  readonly status: number;
  /** Undefined if the answer is empty. */
  readonly json: JsonValue | undefined;
}

/** Reports each call: its status, or undefined without an answer. */
export type OnCall = (operation: string, status: number | undefined, ms: number) => void;

export class HttpClient {
  private readonly timers: TimerQueue;
  /** `Clock.monotonic` time until which GitHub wants no calls. */
  private pausedUntil = -Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly onCall: OnCall,
    private readonly fetch = globalThis.fetch,
  ) {
    this.timers = new TimerQueue(clock, { background: true });
  }

  /** Sends a call. Rejects with `GithubError`, or with the signal's reason. Repeats nothing. */
  async send(call: HttpCall, signal: AbortSignal): Promise<HttpAnswer> {
    const { clock } = this;
    const { operation, timeoutMs = DEFAULT_TIMEOUT_MS, url } = call;
    checkAddress(url);
    const waitMs = this.pausedUntil - clock.monotonic();
    if (waitMs > 0) await sleep(clock, waitMs, signal);
    const startedAt = clock.monotonic();
    const http = new HttpExchange(operation);
    const { host } = new URL(url);
    const limits = {
      ...{ timers: this.timers, signal, deadline: startedAt + timeoutMs },
      onDeadline: () =>
        new GithubError(`${operation}: ${host} has not answered in ${timeoutMs / 1000} s`, undefined, '', undefined),
    };
    let status: number | undefined;
    try {
      const answer = await withDeadline(limits, (ended) =>
        fetchAnswer({ ...call, maxBytes: MAX_ANSWER_BYTES, fetch: this.fetch }, { http, signal: ended }),
      );
      ({ status } = answer);
      const foreign = notJson(answer);
      if (foreign !== undefined) {
        throw new GithubError(`${operation}: ${host} has not answered as GitHub: ${foreign}`, status, '', undefined);
      }
      return { status, json: answer.json };
    } catch (error) {
      signal.throwIfAborted();
      status = http.status;
      throw this.converted(error, operation, host, http);
    } finally {
      if (status !== undefined) call.onTime?.(http.timeOfAnswer(clock.now()));
      this.onCall(operation, status, clock.monotonic() - startedAt);
    }
  }

  private converted(error: unknown, operation: string, host: string, http: HttpExchange): GithubError {
    if (error instanceof GithubError) return error;
    if (!(error instanceof ErrorStatus)) {
      const why = networkCauseOf(error)?.message ?? reasonOf(error);
      return new GithubError(`${operation}: ${host} cannot be reached: ${why}`, undefined, '', undefined, {
        cause: error,
      });
    }
    const { answer } = error;
    const { status } = answer;
    const asked = http.retryAfterMs(this.clock.now());
    const isThrottled = status === 429 || (status === 403 && (asked !== undefined || hasNoCallsLeft(answer)));
    const retryAfterMs = asked ?? (isThrottled ? THROTTLED_MS : undefined);
    if (isThrottled && retryAfterMs !== undefined) {
      this.pausedUntil = Math.max(this.pausedUntil, this.clock.monotonic() + retryAfterMs);
    }
    const { exception, text } = detailsOf(answer);
    const message = `${operation}: ${host} answered with status ${status}: ${text}`;
    return new GithubError(message, status, exception, retryAfterMs, { cause: error });
  }
}

/** Returns true if only programs on this host reach the address. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** Returns true for https, and for http on this host, which simulations use. */
export function isSafeAddress(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
}

/** Refuses addresses that would send tokens in the clear; some of them come from GitHub's answers. */
function checkAddress(url: string): void {
  if (isSafeAddress(url)) return;
  throw new GithubError(
    `credentials are sent over https only, not to ${shortened(url, MAX_TEXT)}`,
    undefined,
    '',
    undefined,
  );
}

function hasNoCallsLeft({ headers }: FetchedAnswer): boolean {
  return headers.get('x-ratelimit-remaining') === '0';
}

function detailsOf({ json, text }: FetchedAnswer): { readonly exception: string; readonly text: string } {
  if (!isJsonObject(json)) return { exception: '', text: shortened(text.trim(), MAX_TEXT) };
  const { typeName, typeKey, message, errorMessage } = json;
  const exception = [typeKey, typeName].filter((each) => typeof each === 'string').join(' ');
  const found = [message, errorMessage].find((each) => typeof each === 'string') ?? text;
  return { exception, text: shortened(found, MAX_TEXT) };
}
