/** Calls to the services of one cloud: each waits for its turn, and carries a token that is renewed when it has to be. */

import {
  AbortedError,
  ConfigurationError,
  isDriverError,
  RateLimiter,
  sleep,
  Slots,
  toDriverError,
  type Call,
  type DriverError,
  type JsonObject,
} from '@nodepool/core';
import type { Readable } from 'node:stream';
import { errorOf } from '../errors.js';
import { objectOf } from './answers.js';
import { Caller, nameOf, type CallerOptions, type Operation } from './caller.js';
import { findEndpoint } from './catalog.js';
import type { Cloud, ServiceName } from './cloud.js';
import type { Credentials } from './credentials.js';
import { logIn } from './login.js';
import type { MakeCall } from './shared-read.js';
import { Tokens, type Token } from './tokens.js';
import type { HttpAnswer } from './transport.js';

/** A call that needs longer has failed. */
const CALL_TIMEOUT_MS = 60_000;

/** Calls of one kind that are under way at the same time, and their turns at the rate limit. */
class Lane {
  readonly underway: Slots;
  /** One waits for the limit on behalf of all, so that reading does not wait behind all the writing, and the other way round. */
  readonly turn = new Slots(1);

  constructor(atOnce: number) {
    this.underway = new Slots(atOnce);
  }
}

const WRITES_AT_ONCE = 24;
const READS_AT_ONCE = 8;

export interface ApiRequest extends Operation {
  readonly service: ServiceName;
  /** Below the service's endpoint, with query. */
  readonly path: string;
  /** Below the root of the service's version, where it describes itself, rather than the project's endpoint. */
  readonly atVersionRoot?: boolean;
  readonly json?: JsonObject;
  /** Data to stream; opened again when the call has to be repeated. */
  readonly data?: { readonly bytes: number; readonly open: () => Readable };
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: a minute. */
  readonly timeoutMs?: number;
}

export interface SessionOptions extends CallerOptions {
  readonly cloud: Cloud;
  /** Asked before each login: passwords are changed while we run. */
  readonly credentials: () => Credentials;
  readonly callsPerSecond: number;
  /** For logins, which are for all. */
  readonly makeCall: MakeCall;
}

/** An answer, and the token that the call was made with. */
interface Exchange {
  readonly token: Token;
  readonly answer: HttpAnswer;
}

export class Session {
  private readonly caller: Caller;
  private readonly limiter: RateLimiter;
  private readonly writes = new Lane(WRITES_AT_ONCE);
  private readonly reads = new Lane(READS_AT_ONCE);
  private readonly tokens: Tokens;
  /** `Clock.monotonic` milliseconds until which a service wants to be left alone. */
  private readonly pausedUntil = new Map<ServiceName, number>();

  constructor(private readonly options: SessionOptions) {
    const { clock, cloud, credentials, callsPerSecond, makeCall } = options;
    this.caller = new Caller(options);
    this.limiter = new RateLimiter(clock, callsPerSecond);
    const place = `${cloud.source}: cloud ${cloud.name}`;
    this.tokens = new Tokens(clock, async () =>
      logIn(this.caller, credentials(), makeCall(), () => clock.monotonic(), place),
    );
  }

  /** Id of the project that calls are for; undefined when they are for none. */
  async projectId(): Promise<string | undefined> {
    return (await this.tokens.get()).projectId;
  }

  /** Whether the cloud has this service. */
  async has(service: ServiceName): Promise<boolean> {
    const { catalog } = await this.tokens.get();
    return findEndpoint(this.options.cloud, catalog, service) !== undefined;
  }

  /**
   * Makes a call; resolves with an answer of a status below 300. Rejects with a `DriverError`, with an outcome; with
   * `AbortedError` and `TimeoutError` as the call's signal and deadline say.
   */
  async request(request: ApiRequest, call: Call): Promise<HttpAnswer> {
    const first = await this.inTurn(request, call);
    if (first.answer.status !== 401) return this.accepted(request, first.answer);
    // All calls that were refused with the same token share the new one.
    this.tokens.refused(first.token);
    return this.accepted(request, (await this.inTurn(request, call)).answer);
  }

  /** The JSON object in the answer. */
  async requestJson(request: ApiRequest, call: Call): Promise<JsonObject> {
    return objectOf(await this.request(request, call), nameOf(request));
  }

  stop(): void {
    this.caller.stop();
  }

  private accepted(request: ApiRequest, answer: HttpAnswer): HttpAnswer {
    if (answer.status < 300) return answer;
    const error = errorOf(this.caller.attempted(request), answer);
    if (error.code === 'throttled') this.pause(request.service, error);
    throw error;
  }

  /** Calls to a service wait as long as it asked one of them to. */
  private pause(service: ServiceName, { retryAfterMs = 0 }: DriverError): void {
    const until = this.options.clock.monotonic() + retryAfterMs;
    this.pausedUntil.set(service, Math.max(until, this.pausedUntil.get(service) ?? 0));
  }

  /** What fails while it waits had no effect. */
  private async inTurn(request: ApiRequest, call: Call): Promise<Exchange> {
    const { underway, turn } = request.method === 'GET' ? this.reads : this.writes;
    try {
      return await underway.run(call.signal, async () => {
        await this.untilWanted(request.service, call);
        await turn.run(call.signal, () => this.limiter.acquire(call.signal));
        // Not before: it may take long until a call has its turn.
        const token = await this.tokens.get();
        return { token, answer: await this.exchange(request, token, call) };
      });
    } catch (error) {
      if (isDriverError(error)) throw error;
      const message = `${nameOf(request)}: it was aborted`;
      throw new AbortedError(message, { cause: error, outcome: 'not-applied' });
    }
  }

  private async untilWanted(service: ServiceName, call: Call): Promise<void> {
    const { clock } = this.options;
    for (;;) {
      const ms = (this.pausedUntil.get(service) ?? 0) - clock.monotonic();
      if (ms <= 0) return;
      await sleep(clock, ms, call.signal);
    }
  }

  private async exchange(request: ApiRequest, token: Token, call: Call): Promise<HttpAnswer> {
    const endpoint = this.endpointOf(request.service, token);
    const base = request.atVersionRoot === true ? endpoint.replace(/(\/v\d+(\.\d+)?)\/.*$/, '$1') : endpoint;
    const url = base + request.path;
    try {
      return await this.send(request, url, token, call);
    } catch (error) {
      // The other side may have closed a kept connection at this very moment; what only reads is simply repeated.
      const again = request.method === 'GET' && toDriverError(error).code === 'transient' && !call.signal.aborted;
      if (!again) throw error;
      return this.send(request, url, token, call);
    }
  }

  private async send(request: ApiRequest, url: string, token: Token, call: Call): Promise<HttpAnswer> {
    const { service, method, operation, json, data, timeoutMs = CALL_TIMEOUT_MS } = request;
    const headers = { ...headersOf(request), ...request.headers, 'x-auth-token': token.value };
    const body = json === undefined ? data?.open() : JSON.stringify(json);
    try {
      return await this.caller.send({ service, method, operation }, { url, headers, body, timeoutMs }, call);
    } finally {
      if (typeof body === 'object') body.destroy();
    }
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
