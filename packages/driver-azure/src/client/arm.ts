/**
 * Calls of the resource manager: every call has its turn, its time, its entry in the metrics, and fails with an error that core
 * understands. Nothing is repeated here, but for a call whose token was refused: the state machines do it, on their clock.
 */

import type { HttpClient, Pipeline, PipelineResponse } from '@azure/core-rest-pipeline';
import {
  GuardedCalls,
  isJsonObject,
  NotFoundError,
  RateLimiter,
  stringAt,
  TimerQueue,
  toDriverError,
  TransientError,
  type ApiCall,
  type Call,
  type Clock,
  type DriverError,
  type JsonValue,
} from '@nodepool/core';
import type { AzureAuth } from '../auth.js';
import { cloudErrorIn, errorOf, failureOf, retryAfterIn, type CloudError } from '../errors.js';
import { loadPipeline } from './libraries.js';
import { makePipeline } from './login.js';

/** Longest time for one answer. */
const CALL_TIMEOUT_MS = 60_000;
const TRANSFER_TIMEOUT_MS = 300_000;
/** How long to wait before an operation is asked for again that does not say so. */
const DEFAULT_POLL_MS = 5000;

/** A kind of call, for messages and metrics. */
export interface Operation {
  readonly service: 'compute' | 'network' | 'resources' | 'storage';
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly operation: string;
}

/** A call: its path begins with a slash, below the endpoint. */
export interface ArmRequest {
  readonly path: string;
  readonly version: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface RawResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | undefined };
}

/** Where an asynchronous operation has got to. */
export type Progress =
  | { readonly status: 'running'; readonly retryAfterMs: number }
  /** With what the operation gave, where it gives something. */
  | { readonly status: 'succeeded'; readonly result: JsonValue | undefined }
  | { readonly status: 'failed'; readonly error: DriverError };

/** An asynchronous operation that was accepted; without a URL it has ended already. */
export interface Accepted {
  readonly url: string | undefined;
  readonly retryAfterMs: number;
  /** There was nothing to be done (204). */
  readonly nothing: boolean;
}

export interface ArmOptions {
  readonly auth: AzureAuth;
  readonly clock: Clock;
  readonly callsPerSecond: number;
  readonly onApiCall: (call: ApiCall) => void;
}

export class Arm {
  readonly subscriptionId: string;
  private readonly guarded: GuardedCalls;
  private readonly limiter: RateLimiter;
  private readonly http: HttpClient = loadPipeline().createDefaultHttpClient();
  private pipeline: Pipeline;

  constructor(private readonly options: ArmOptions) {
    this.subscriptionId = options.auth.subscriptionId;
    this.guarded = new GuardedCalls(new TimerQueue(options.clock));
    this.limiter = new RateLimiter(options.clock, options.callsPerSecond);
    this.pipeline = makePipeline(options.auth);
  }

  /** Returns the body of an answer, e.g. a resource. Rejects with a `DriverError`, with an outcome. */
  async call<T>(kind: Operation, call: Call, request: ArmRequest): Promise<T> {
    const { bodyAsText } = await this.send(kind, call, this.urlOf(request), request.body);
    // Azure's definitions say what the body is; the tests compare them with what is read of it.
    return parse(bodyAsText) as T;
  }

  /** All pages; each is a call. */
  async list<T>(kind: Operation, call: Call, request: ArmRequest): Promise<readonly T[]> {
    const found: T[] = [];
    for (let url: string | undefined = this.urlOf(request); url !== undefined;) {
      const { bodyAsText }: PipelineResponse = await this.send(kind, call, url);
      const page = parse(bodyAsText);
      if (!isJsonObject(page) || !Array.isArray(page['value'])) {
        throw new TransientError(`${nameOf(kind)}: Azure answered without a list`, { outcome: 'not-applied' });
      }
      found.push(...(page['value'] as unknown as readonly T[]));
      const next = stringAt(page, 'nextLink');
      url = next === undefined || next === '' ? undefined : this.ownUrl(nameOf(kind), next);
    }
    return found;
  }

  /**
   * Starts an asynchronous operation: resolves when it is accepted, not when it has ended. `location` gives the operation's
   * result, `azure-asyncoperation` its state.
   */
  async begin(
    kind: Operation,
    call: Call,
    request: ArmRequest,
    follow: 'azure-asyncoperation' | 'location' = 'azure-asyncoperation',
  ): Promise<Accepted> {
    const { status, headers } = await this.send(kind, call, this.urlOf(request), request.body);
    const address = headers.get(follow) ?? headers.get('azure-asyncoperation') ?? headers.get('location');
    return {
      url: status === 204 ? undefined : address,
      retryAfterMs: this.pollMs(headers.get('retry-after')),
      nothing: status === 204,
    };
  }

  /** Asks an operation how far it is. `NotFoundError`: Azure does not know it (any more). */
  async progress(what: string, url: string, call: Call): Promise<Progress> {
    const kind: Operation = { service: 'compute', method: 'GET', operation: 'operations' };
    const { status, headers, bodyAsText } = await this.send(kind, call, this.ownUrl(what, url));
    const retryAfterMs = this.pollMs(headers.get('retry-after'));
    if (status === 202) return { status: 'running', retryAfterMs };
    return progressIn(what, parse(bodyAsText), retryAfterMs);
  }

  /** A transfer of data, which takes no turn: it goes elsewhere. Resolves when it was taken (201); `send` gets the authorities to trust. */
  async transfer(
    kind: Operation,
    call: Call,
    send: (ca: string | undefined, signal: AbortSignal) => Promise<PipelineResponse>,
  ): Promise<void> {
    await this.measured(kind, call, TRANSFER_TIMEOUT_MS, async (signal) => {
      const { status, headers, bodyAsText } = await send(this.options.auth.ca, signal);
      if (status === 201) return;
      const [, code = ''] = /<Code>([^<]*)</.exec(bodyAsText ?? '') ?? [];
      throw answerError(status, { code, message: `${code} the storage service refused a part of the disk` }, headers);
    });
  }

  /** Work of several calls: ends when its signal aborts, at its deadline, and at `stop`, with a `DriverError`. */
  within<T>(what: string, call: Call, work: (call: Call) => Promise<T>): Promise<T> {
    return this.guarded.make(what, call, work);
  }

  /** Ends what is under way. */
  stop(): void {
    this.guarded.stop();
  }

  /** A token that is refused is replaced, once. */
  private async send(kind: Operation, call: Call, url: string, body?: unknown): Promise<PipelineResponse> {
    const { pipeline } = this;
    try {
      return await this.once(kind, call, pipeline, url, body);
    } catch (error) {
      if (!wasRefused(error)) throw error;
      // The pipeline keeps its token; another caller may have replaced it already.
      if (this.pipeline === pipeline) this.pipeline = makePipeline(this.options.auth);
      return await this.once(kind, call, this.pipeline, url, body);
    }
  }

  private async once(
    kind: Operation,
    call: Call,
    pipeline: Pipeline,
    url: string,
    body: unknown,
  ): Promise<PipelineResponse> {
    await this.limiter.acquire(call.signal);
    const { createHttpHeaders, createPipelineRequest } = loadPipeline();
    return await this.measured(kind, call, CALL_TIMEOUT_MS, async (abortSignal) => {
      const answer = await pipeline.sendRequest(
        this.http,
        createPipelineRequest({
          ...{ url, method: kind.method, abortSignal },
          headers: createHttpHeaders({
            accept: 'application/json',
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          }),
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      );
      const { status, headers, bodyAsText } = answer;
      if (status < 400) return answer;
      throw answerError(status, cloudErrorIn(parse(bodyAsText)), headers);
    });
  }

  private urlOf({ path, version, query }: ArmRequest): string {
    const parameters = new URLSearchParams({ 'api-version': version, ...query });
    return `${this.options.auth.endpoint}${path}?${parameters.toString()}`;
  }

  /** An address may have been read from ZooKeeper, or from an answer; the token goes nowhere else than to Azure. */
  private ownUrl(what: string, url: string): string {
    const { endpoint } = this.options.auth;
    if (URL.canParse(url) && new URL(url).origin === new URL(endpoint).origin) return url;
    throw new NotFoundError(`${what}: ${JSON.stringify(url)} is no address of ${endpoint}`);
  }

  private async measured<T>(
    kind: Operation,
    call: Call,
    timeoutMs: number,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, onApiCall } = this.options;
    const startedAt = clock.monotonic();
    // Calls are not spread: a state machine's has getters.
    const deadline = Math.min(call.deadline, startedAt + timeoutMs);
    let status: ApiCall['status'];
    try {
      const result = await this.guarded.make(
        nameOf(kind),
        { signal: call.signal, deadline, log: call.log },
        async ({ signal }) => {
          try {
            return await work(signal);
          } catch (error) {
            throw errorOf(this.attempted(kind), error);
          }
        },
      );
      status = 200;
      return result;
    } catch (error) {
      status = toDriverError(error).code;
      throw error;
    } finally {
      onApiCall({ ...kind, durationMs: clock.monotonic() - startedAt, status });
    }
  }

  private attempted(kind: Operation): Parameters<typeof errorOf>[0] {
    return { operation: nameOf(kind), changesSomething: kind.method !== 'GET', now: this.options.clock.now() };
  }

  private pollMs(retryAfter: string | undefined): number {
    return retryAfterIn(retryAfter, this.options.clock.now()) ?? DEFAULT_POLL_MS;
  }
}

/** An answer to a call of our own, as Azure's libraries reject with one. */
function answerError(status: number, { code, message }: CloudError, headers: RawResponse['headers']): Error {
  return Object.assign(new Error(message), { statusCode: status, code, response: { headers } });
}

/** What an operation's resource says; the address of a `Location` gives the result itself instead. */
function progressIn(what: string, body: JsonValue | undefined, retryAfterMs: number): Progress {
  const status = isJsonObject(body) ? stringAt(body, 'status') : undefined;
  if (status === undefined || status === 'Succeeded') return { status: 'succeeded', result: body };
  if (status !== 'Failed' && status !== 'Canceled') return { status: 'running', retryAfterMs };
  return { status: 'failed', error: failureOf(what, cloudErrorIn(body)) };
}

function parse(text: string | null | undefined): JsonValue | undefined {
  if (text === null || text === undefined || text === '') return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new TransientError('Azure answered with something that is not JSON', {
      cause: error,
      outcome: 'not-applied',
    });
  }
}

/** Whether it was the token that was refused: the answer came from the resource manager, with 401. */
function wasRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return typeof cause === 'object' && cause !== null && 'statusCode' in cause && cause.statusCode === 401;
}

/** e.g. `compute: PUT virtualMachines`. */
function nameOf({ service, method, operation }: Operation): string {
  return `${service}: ${method} ${operation}`;
}
