/** Calls the services of one cloud with rate limiting, and renews the token when needed. */

import {
  AbortedError,
  ConfigurationError,
  isDriverError,
  RateLimiter,
  sleep,
  Slots,
  ThrottledError,
  toDriverError,
  type TokenSource,
  type Call,
  type DriverError,
  type JsonObject,
  type MakeCall,
} from '@nodepool/core';
import type { Readable } from 'node:stream';
import { expectReceipt, objectOf } from './answers.js';
import { Caller, nameOf, type Answered, type CallerOptions, type Operation } from './caller.js';
import { findEndpoint, hasEndpoint } from './catalog.js';
import type { Cloud, ServiceName } from './cloud.js';
import { secretsIn, type Credentials } from './credentials.js';
import { tokenSource } from './login.js';
import type { Token } from './tokens.js';
import type { HttpAnswer } from './transport.js';

/** Time limit of a call (ms). */
const CALL_TIMEOUT_MS = 60_000;

/** Limits the concurrent calls of one kind (reads or writes) and their access to the rate limit. */
class Lane {
  readonly underway: Slots;
  /** One call per lane waits for the rate limit, so that reads do not queue behind all writes, and vice versa. */
  readonly turn = new Slots(1);

  constructor(atOnce: number) {
    this.underway = new Slots(atOnce);
  }
}

const WRITES_AT_ONCE = 24;
const READS_AT_ONCE = 8;

export interface ApiRequest extends Operation {
  readonly service: ServiceName;
  /** Relative to the service's endpoint, with query. */
  readonly path: string;
  /**
   * If true, the path is relative to the root of the service's version, which describes the service, instead of the
   * project's endpoint.
   */
  readonly atVersionRoot?: boolean;
  readonly json?: JsonObject;
  /** Data to stream; `open` is called again if the call is retried. */
  readonly data?: { readonly bytes: number; readonly open: () => Readable };
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: one minute. */
  readonly timeoutMs?: number;
}

export interface SessionOptions extends CallerOptions {
  readonly cloud: Cloud;
  /** Called before each login, because passwords change while the launcher runs. */
  readonly credentials: () => Credentials;
  readonly callsPerSecond: number;
  /** Creates calls for logins, which all requests share. */
  readonly makeCall: MakeCall;
}

/** An answer and the token of its request. */
interface Exchange extends Answered {
  readonly token: Token;
}

export class Session {
  private readonly caller: Caller;
  private readonly limiter: RateLimiter;
  private readonly writes = new Lane(WRITES_AT_ONCE);
  private readonly reads = new Lane(READS_AT_ONCE);
  private readonly tokens: TokenSource<Token>;
  /** `Clock.monotonic` time (ms) until which calls to a service are paused. */
  private readonly pausedUntil = new Map<ServiceName, number>();

  constructor(private readonly options: SessionOptions) {
    const { clock, cloud, credentials, callsPerSecond } = options;
    this.caller = new Caller(options, () => [this.tokens.latest?.value, ...secretsIn(credentials())]);
    this.limiter = new RateLimiter(clock, callsPerSecond);
    const place = `${cloud.source}: cloud ${cloud.name}`;
    this.tokens = tokenSource({ caller: this.caller, clock, credentials, place });
  }

  /** Returns the project id of the token, or undefined if the token has no project scope. */
  async projectId(): Promise<string | undefined> {
    return (await this.tokens.get(this.options.makeCall())).projectId;
  }

  /** Returns true if the cloud has the service, in the region of the provider. */
  async has(service: ServiceName): Promise<boolean> {
    const { catalog } = await this.tokens.get(this.options.makeCall());
    return hasEndpoint(this.options.cloud, catalog, service);
  }

  /**
   * Makes a call and resolves with an answer of a status below 300. Rejects with a `DriverError` that has an outcome;
   * with `AbortedError` or `TimeoutError` according to the call's signal and deadline.
   */
  async request(request: ApiRequest, call: Call): Promise<HttpAnswer> {
    const first = await this.inTurn(request, call);
    if (first.status !== 401) return this.accepted(request, first);
    // All calls that were refused with this token share the new one.
    this.tokens.refused(first.token);
    return this.accepted(request, await this.inTurn(request, call));
  }

  /** Resolves with the JSON object in the answer. */
  async requestJson(request: ApiRequest, call: Call): Promise<JsonObject> {
    return objectOf(await this.request(request, call), nameOf(request));
  }

  /** Makes a call whose answer only confirms it. Rejects with `TransientError` if the answer is that of a proxy. */
  async requestReceipt(request: ApiRequest, call: Call): Promise<void> {
    expectReceipt(await this.request(request, call), nameOf(request));
  }

  /** Deletes a resource. Rejects with `NotFoundError` if it does not exist. */
  async delete(service: ServiceName, operation: string, path: string, call: Call): Promise<void> {
    await this.requestReceipt({ service, method: 'DELETE', operation, path }, call);
  }

  stop(): void {
    this.caller.stop();
  }

  private accepted(request: ApiRequest, answered: Answered): HttpAnswer {
    if (answered.status < 300) {
      this.limiter.settled();
      return answered.answer;
    }
    const error = this.caller.failureOf(request, answered);
    // The pause that the cloud demands concerns one service; the rate is that of all.
    if (error.code === 'throttled') {
      this.limiter.settled(new ThrottledError(error.message));
      this.pause(request.service, error);
    }
    throw error;
  }

  /** Delays all calls to a service for the time that one of its answers demanded. */
  private pause(service: ServiceName, { retryAfterMs = 0 }: DriverError): void {
    const until = this.options.clock.monotonic() + retryAfterMs;
    this.pausedUntil.set(service, Math.max(until, this.pausedUntil.get(service) ?? 0));
  }

  /** Makes a call when the limits allow it. A call that fails while waiting had no effect. */
  private async inTurn(request: ApiRequest, call: Call): Promise<Exchange> {
    const { underway, turn } = request.method === 'GET' ? this.reads : this.writes;
    const { clock } = this.options;
    const queuedAt = clock.monotonic();
    try {
      for (;;) {
        // A call to a paused service does not occupy a slot, which calls to other services need.
        await this.untilResumed(request.service, call);
        const exchange = await underway.run(call.signal, async () => {
          if (this.pauseOf(request.service) > 0) return undefined;
          await turn.run(call.signal, () => this.limiter.acquire(call.signal));
          // The token is read last, because waiting may take longer than its lifetime.
          const token = await this.tokens.get(this.after(queuedAt, call));
          return { token, ...(await this.exchange(request, token, this.after(queuedAt, call))) };
        });
        if (exchange !== undefined) return exchange;
      }
    } catch (error) {
      if (isDriverError(error)) throw error;
      const message = `${nameOf(request)}: it was aborted`;
      throw new AbortedError(message, { cause: error, outcome: 'not-applied' });
    }
  }

  /** Returns the call without the time that it waited: a long queue would otherwise consist of expired calls. */
  private after(queuedAt: number, { signal, deadline, log }: Call): Call {
    return { signal, log, deadline: deadline + this.options.clock.monotonic() - queuedAt };
  }

  private async untilResumed(service: ServiceName, call: Call): Promise<void> {
    const { clock } = this.options;
    for (;;) {
      const ms = this.pauseOf(service);
      if (ms <= 0) return;
      await sleep(clock, ms, call.signal);
    }
  }

  /** Returns the remaining time (ms) for which calls to a service are paused; 0 or less if they are not. */
  private pauseOf(service: ServiceName): number {
    return (this.pausedUntil.get(service) ?? 0) - this.options.clock.monotonic();
  }

  private async exchange(request: ApiRequest, token: Token, call: Call): Promise<Answered> {
    const endpoint = this.endpointOf(request.service, token);
    const base = request.atVersionRoot === true ? endpoint.replace(/(\/v\d+(\.\d+)?)\/.*$/, '$1') : endpoint;
    const url = base + request.path;
    try {
      return await this.send(request, url, token, call);
    } catch (error) {
      // The server may have just closed the kept-alive connection; a GET can simply be retried.
      const again = request.method === 'GET' && toDriverError(error).code === 'transient' && !call.signal.aborted;
      if (!again) throw error;
      return this.send(request, url, token, call);
    }
  }

  private send(request: ApiRequest, url: string, token: Token, call: Call): Promise<Answered> {
    const { service, method, operation, json, data, timeoutMs = CALL_TIMEOUT_MS } = request;
    const headers = { ...headersOf(request), ...request.headers, 'x-auth-token': token.value };
    const body = json === undefined ? data?.open : JSON.stringify(json);
    return this.caller.send({ service, method, operation }, { url, headers, body, timeoutMs }, call);
  }

  private endpointOf(service: ServiceName, token: Token): string {
    const { cloud } = this.options;
    const endpoint = findEndpoint(cloud, token.catalog, service);
    if (endpoint !== undefined) return endpoint.replace(/[%$]\((tenant|project)_id\)s/g, token.projectId ?? '');
    throw new ConfigurationError(
      `${cloud.source}: cloud ${cloud.name}: the catalog has no ${service} service; ${service}_endpoint_override can say where it is`,
    );
  }
}

function headersOf({ json, data }: ApiRequest): Record<string, string> {
  const accept = { accept: 'application/json' };
  if (json !== undefined) return { ...accept, 'content-type': 'application/json' };
  if (data === undefined) return accept;
  return { ...accept, 'content-type': 'application/octet-stream', 'content-length': String(data.bytes) };
}
