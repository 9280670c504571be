/** Calls the services of one cloud with the token of a login. */

import type {
  ApiClientOptions,
  ApiOperation,
  Attempt,
  Attempted,
  Call,
  DriverError,
  JsonObject,
  Lane,
  MakeCall,
  TokenSource,
} from '@nodepool/core';
import { ApiClient, ConfigurationError, isJsonObject, networkCauseOf } from '@nodepool/core';
import type { Readable } from 'node:stream';
import { connectionErrorOf, errorOf } from '../errors.js';
import { foreignReceipt, jsonOf, notAnObject, type ReadAnswer } from './answers.js';
import { findEndpoint, hasEndpoint } from './catalog.js';
import type { Cloud, ServiceName } from './cloud.js';
import { secretsIn, type Credentials } from './credentials.js';
import { tokenSource } from './login.js';
import type { Token } from './tokens.js';
import { HttpStatusError, sendMessage, type HttpAnswer, type HttpRequest, type HttpTransport } from './transport.js';

/** Reads do not queue behind all writes, and vice versa. */
const WRITES_AT_ONCE = 24;
const READS_AT_ONCE = 8;

export interface ServiceRequest extends ApiOperation {
  readonly service: ServiceName;
  readonly method: HttpRequest['method'];
  /** Relative to the service's endpoint, with query. */
  readonly path: string;
  /** If true, the path is relative to the root of the service's version instead of the project's endpoint. */
  readonly atVersionRoot?: boolean;
  readonly json?: JsonObject;
  /** Data to stream; `open` is called again if the call is retried. */
  readonly data?: { readonly bytes: number; readonly open: () => Readable };
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: one minute. */
  readonly timeoutMs?: number;
}

export interface SessionOptions extends Pick<ApiClientOptions<Token>, 'clock' | 'onApiCall'> {
  readonly transport: HttpTransport;
  readonly cloud: Cloud;
  /** Called before each login, because passwords change while the launcher runs. */
  readonly credentials: () => Credentials;
  readonly callsPerSecond: number;
  /** Creates calls for logins, which all requests share. */
  readonly makeCall: MakeCall;
}

export class Session {
  private readonly api: ApiClient<Token>;
  private readonly writes: Lane;
  private readonly reads: Lane;
  private readonly tokens: TokenSource<Token>;

  constructor(private readonly options: SessionOptions) {
    const { clock, onApiCall, cloud, credentials, callsPerSecond, transport } = options;
    const place = `${cloud.source}: cloud ${cloud.name}`;
    this.tokens = tokenSource({ api: () => this.api, clock, transport, credentials, place });
    this.api = new ApiClient({
      ...{ clock, onApiCall, callsPerSecond, pauses: 'service' },
      credentials: this.tokens,
      secrets: () => [this.tokens.latest?.value, ...secretsIn(credentials())],
      errorOf: failureOf,
    });
    this.writes = this.api.lane({ atOnce: WRITES_AT_ONCE });
    this.reads = this.api.lane({ atOnce: READS_AT_ONCE });
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

  /** Makes a call and resolves with the JSON object in its answer. Rejects with a `DriverError` that has an outcome. */
  async requestJson(request: ServiceRequest, call: Call): Promise<JsonObject> {
    const read = (answer: HttpAnswer): ReadAnswer => ({ text: answer.text, body: jsonOf(answer) });
    const { body } = await this.send(request, call, read, notAnObject);
    return isJsonObject(body) ? body : {};
  }

  /** Makes a call whose answer only confirms it. Rejects with `TransientError` if the answer is that of a proxy. */
  async requestReceipt(request: ServiceRequest, call: Call): Promise<void> {
    await this.send(request, call, (answer) => answer, foreignReceipt);
  }

  /** Deletes a resource. Rejects with `NotFoundError` if it does not exist. */
  async delete(service: ServiceName, operation: string, path: string, call: Call): Promise<void> {
    await this.requestReceipt({ service, method: 'DELETE', operation, path }, call);
  }

  stop(): void {
    this.api.stop();
  }

  private send<T>(
    request: ServiceRequest,
    call: Call,
    read: (answer: HttpAnswer) => T,
    foreign: (content: T) => string | undefined,
  ): Promise<T> {
    const { service, method, operation, timeoutMs } = request;
    const lane = method === 'GET' ? this.reads : this.writes;
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    return this.api.send({ service, method, operation, lane, foreign, ...limit }, call, async (attempt) => {
      try {
        return read(await this.exchange(request, attempt));
      } catch (error) {
        // The server may have just closed the kept-alive connection; a GET can simply be retried.
        if (method !== 'GET' || networkCauseOf(error) === undefined || attempt.signal.aborted) throw error;
        return read(await this.exchange(request, attempt));
      }
    });
  }

  private exchange(request: ServiceRequest, attempt: Attempt<Token>): Promise<HttpAnswer> {
    const { service, method, path, json, data, atVersionRoot } = request;
    const { credentials: token } = attempt;
    const endpoint = this.endpointOf(service, token);
    const base = atVersionRoot === true ? endpoint.replace(/(\/v\d+(\.\d+)?)\/.*$/, '$1') : endpoint;
    const headers = { ...headersOf(request), ...request.headers, 'x-auth-token': token.value };
    const body = json === undefined ? data?.open : JSON.stringify(json);
    return sendMessage(this.options.transport, { method, url: base + path, headers, body }, attempt);
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

/** Returns the `DriverError` for an error answer or a failed connection. */
export function failureOf(error: unknown, attempted: Attempted): DriverError {
  return error instanceof HttpStatusError ? errorOf(attempted, error.answer) : connectionErrorOf(attempted, error);
}

function headersOf({ json, data }: ServiceRequest): Record<string, string> {
  const accept = { accept: 'application/json' };
  if (json !== undefined) return { ...accept, 'content-type': 'application/json' };
  if (data === undefined) return accept;
  return { ...accept, 'content-type': 'application/octet-stream', 'content-length': String(data.bytes) };
}
