/**
 * Calls the resource manager with rate limiting, a deadline, metrics, and errors that core understands. Only a call
 * with refused credentials is repeated here; the state machines do all other retries on their own clock.
 */

import type { HttpClient, Pipeline, PipelineRequest } from '@azure/core-rest-pipeline';
import type { ApiCall, Call, Clock, DriverError, JsonValue } from '@nodepool/core';
import {
  ApiClient,
  isJsonObject,
  nameOfCall,
  NotFoundError,
  retryAfterMsIn,
  serverTime,
  stringAt,
  TransientError,
} from '@nodepool/core';
import type { AzureAuth } from '../auth.js';
import { cloudErrorIn, errorOf, failureOf, type CloudError } from '../errors.js';
import { Credentials, type Used } from './credentials.js';
import { clientOf, newHttpClient, pipelineOptions } from './http.js';
import { loadPipeline } from './libraries.js';

const TRANSFER_TIMEOUT_MS = 300_000;
/** Interval between polls of an operation that does not specify one (ms). */
const DEFAULT_POLL_MS = 5000;

/** The kind of a call, for messages and metrics. */
export interface Operation {
  readonly service: 'compute' | 'network' | 'resources' | 'storage';
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly operation: string;
}

/** A request; its path starts with a slash and is relative to the endpoint. */
export interface ArmRequest {
  readonly path: string;
  readonly version: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** An answer without an error. */
interface Answer {
  readonly status: number;
  readonly headers: { get(name: string): string | undefined };
  readonly text: string;
  /** The JSON of the text; undefined if it is empty or not JSON. */
  readonly content: JsonValue | undefined;
}

export type Progress =
  | { readonly status: 'running'; readonly retryAfterMs: number }
  /** `result` is the operation's result, if it has one. */
  | { readonly status: 'succeeded'; readonly result: JsonValue | undefined }
  | { readonly status: 'failed'; readonly error: DriverError };

/** An accepted asynchronous operation. Without a URL, it has already completed. */
export interface Accepted {
  readonly url: string | undefined;
  readonly retryAfterMs: number;
  /** True if there was nothing to do (204). */
  readonly nothing: boolean;
}

export interface ArmOptions {
  /** Reads the credentials. It is called again when they are refused. */
  readonly readAuth: () => AzureAuth;
  readonly clock: Clock;
  readonly callsPerSecond: number;
  readonly onApiCall: (call: ApiCall) => void;
}

export class Arm {
  readonly subscriptionId: string;
  private readonly api: ApiClient<Used>;
  private readonly client: HttpClient = newHttpClient();
  private readonly pipeline: Pipeline = loadPipeline().createPipelineFromOptions(pipelineOptions(undefined));
  private readonly credentials: Credentials;

  constructor(private readonly options: ArmOptions) {
    const { clock, callsPerSecond, onApiCall, readAuth } = options;
    this.credentials = new Credentials({ read: readAuth, api: () => this.api, client: this.client, clock });
    this.api = new ApiClient({
      ...{ clock, callsPerSecond, onApiCall, credentials: this.credentials },
      secrets: () => this.credentials.secrets,
      errorOf: (error, attempted) => errorOf(attempted, error),
    });
    this.subscriptionId = this.credentials.auth.subscriptionId;
  }

  /** Returns the body of an answer, e.g. a resource. Rejects with a `DriverError` that has an outcome. */
  async call<T>(kind: Operation, call: Call, request: ArmRequest): Promise<T> {
    const { content } = await this.send(kind, call, this.urlOf(request), request.body);
    // The type follows Azure's definitions; tests validate the properties that are read.
    return content as T;
  }

  /** Lists the items of all pages with one call per page. */
  async list<T>(kind: Operation, call: Call, request: ArmRequest): Promise<readonly T[]> {
    const found: T[] = [];
    for (let url: string | undefined = this.urlOf(request); url !== undefined;) {
      const { content: page }: Answer = await this.send(kind, call, url);
      if (!isJsonObject(page) || !Array.isArray(page['value'])) {
        throw new TransientError(`${nameOfCall(kind)}: Azure answered without a list`, { outcome: 'not-applied' });
      }
      found.push(...(page['value'] as unknown as readonly T[]));
      const next = stringAt(page, 'nextLink');
      url = next === undefined || next === '' ? undefined : this.ownUrl(nameOfCall(kind), next);
    }
    return found;
  }

  /**
   * Starts an asynchronous operation and resolves when it is accepted, not when it has completed. The `location` header
   * points to the operation's result, `azure-asyncoperation` to its state.
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
      retryAfterMs: this.pollMs(headers),
      nothing: status === 204,
    };
  }

  /** Reads the progress of an operation. Rejects with `NotFoundError` if Azure does not know the operation (now). */
  async progress(what: string, url: string, call: Call): Promise<Progress> {
    const kind: Operation = { service: 'compute', method: 'GET', operation: 'operations' };
    const { status, headers, content } = await this.send(kind, call, this.ownUrl(what, url));
    const retryAfterMs = this.pollMs(headers);
    if (status === 202) return { status: 'running', retryAfterMs };
    return progressIn(what, content, retryAfterMs);
  }

  /** Transfers data to another service, outside the rate limit. Resolves when the data is accepted (201). */
  async transfer(kind: Operation, call: Call, request: PipelineRequest): Promise<void> {
    const limits = { timeoutMs: TRANSFER_TIMEOUT_MS, lane: 'none' } as const;
    await this.api.send({ ...kind, ...limits }, call, async ({ http, signal, credentials: { tls } }) => {
      request.abortSignal = signal;
      if (tls !== undefined) request.tlsSettings = tls;
      const { status, bodyAsText } = await clientOf(this.client, http).sendRequest(request);
      if (status === 201) return;
      if (status < 400) {
        throw new TransientError(
          `${nameOfCall(kind)}: status ${status} is not that of the storage service; is it a proxy's?`,
        );
      }
      const [, code = ''] = /<Code>([^<]*)</.exec(bodyAsText ?? '') ?? [];
      throw answerError(status, { code, message: `${code} the storage service refused a part of the disk` });
    });
  }

  /** Runs work of several calls. Rejects with a `DriverError` on abort, at its deadline, and when `stop` is called. */
  within<T>(what: string, call: Call, work: (call: Call) => Promise<T>): Promise<T> {
    return this.api.within(what, call, work);
  }

  stop(): void {
    this.api.stop();
  }

  private send(kind: Operation, call: Call, url: string, body?: unknown): Promise<Answer> {
    const { createHttpHeaders, createPipelineRequest } = loadPipeline();
    return this.api.send({ ...kind, foreign: foreignOrigin }, call, async ({ http, signal, credentials }) => {
      const { tls, token } = credentials;
      const request = createPipelineRequest({
        ...{ url, method: kind.method, abortSignal: signal },
        headers: createHttpHeaders({
          accept: 'application/json',
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        }),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (tls !== undefined) request.tlsSettings = tls;
      const { status, headers, bodyAsText } = await this.pipeline.sendRequest(clientOf(this.client, http), request);
      const text = bodyAsText ?? '';
      if (status >= 400) throw answerError(status, errorIn(text));
      return { status, headers, text, content: parsed(text) };
    });
  }

  private urlOf({ path, version, query }: ArmRequest): string {
    const parameters = new URLSearchParams({ 'api-version': version, ...query });
    return `${this.credentials.auth.endpoint}${path}?${parameters.toString()}`;
  }

  /** Checks that a URL, which may come from ZooKeeper or an answer, is Azure's: no other server may get the token. */
  private ownUrl(what: string, url: string): string {
    const { endpoint } = this.credentials.auth;
    if (URL.canParse(url) && new URL(url).origin === new URL(endpoint).origin) return url;
    throw new NotFoundError(`${what}: ${JSON.stringify(url)} is not an address of ${endpoint}`);
  }

  private pollMs(headers: Answer['headers']): number {
    const now = serverTime(headers.get('date'), this.options.clock.now());
    return retryAfterMsIn(headers.get('retry-after'), now) ?? DEFAULT_POLL_MS;
  }
}

/** Returns an error for an answer, with the properties of those from Azure's libraries. */
function answerError(status: number, { code, message }: CloudError): Error {
  return Object.assign(new Error(message), { statusCode: status, code });
}

/**
 * Returns the reason unless Azure sent an answer. Every answer of Azure has a request id ("Common API Details" of the
 * resource provider contract). A proxy answers without it, and otherwise its 204 would equal the answer to a deletion.
 */
function foreignOrigin({ status, headers, text, content }: Answer): string | undefined {
  if (headers.get('x-ms-request-id') === undefined && headers.get('x-ms-correlation-request-id') === undefined) {
    return `status ${status} without "x-ms-request-id", the mark of answers of Azure; is it a proxy's?`;
  }
  return text !== '' && content === undefined ? 'the answer is not JSON; is it of Azure?' : undefined;
}

/** Interprets the resource of an operation. The URL of a `Location` header returns the result itself instead. */
function progressIn(what: string, body: JsonValue | undefined, retryAfterMs: number): Progress {
  const status = isJsonObject(body) ? stringAt(body, 'status') : undefined;
  if (status === undefined || status === 'Succeeded') return { status: 'succeeded', result: body };
  if (status !== 'Failed' && status !== 'Canceled') return { status: 'running', retryAfterMs };
  return { status: 'failed', error: failureOf(what, cloudErrorIn(body)) };
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** Returns the error in an answer. A gateway in front of Azure answers with a page; its status tells the kind. */
function errorIn(text: string): CloudError {
  const content = parsed(text);
  const isPage = content === undefined && text !== '';
  return isPage ? { code: '', message: 'the answer is not JSON' } : cloudErrorIn(content);
}
