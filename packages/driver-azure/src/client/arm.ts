/**
 * Azure's own clients, as this driver uses them: every call has its turn, its time, its entry in the metrics, and fails with an
 * error that core understands. What Azure's libraries would do by themselves on the wall's clock (retries, polling) is switched
 * off: the state machines do it.
 */

import { ComputeManagementClient } from '@azure/arm-compute';
import { NetworkManagementClient } from '@azure/arm-network';
import { ResourceManagementClient } from '@azure/arm-resources';
import {
  createDefaultHttpClient,
  createPipelineRequest,
  type HttpClient,
  type PipelineResponse,
} from '@azure/core-rest-pipeline';
import {
  ClientSecretCredential,
  ManagedIdentityCredential,
  WorkloadIdentityCredential,
  type TokenCredential,
} from '@azure/identity';
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

export interface Clients {
  readonly compute: ComputeManagementClient;
  readonly network: NetworkManagementClient;
  readonly resources: ResourceManagementClient;
}

/** What calls of Azure's libraries are made with. */
export interface RequestOptions {
  readonly abortSignal: AbortSignal;
  readonly onResponse: (response: RawResponse) => void;
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
  private readonly http: HttpClient = createDefaultHttpClient();
  private clients: Clients;

  constructor(private readonly options: ArmOptions) {
    this.subscriptionId = options.auth.subscriptionId;
    this.guarded = new GuardedCalls(new TimerQueue(options.clock));
    this.limiter = new RateLimiter(options.clock, options.callsPerSecond);
    this.clients = makeClients(options.auth);
  }

  /** Makes a call. Rejects with a `DriverError`, with an outcome. A token that is refused is replaced, once. */
  async call<T>(
    kind: Operation,
    call: Call,
    work: (clients: Clients, options: RequestOptions) => Promise<T>,
    timeoutMs = CALL_TIMEOUT_MS,
  ): Promise<T> {
    const { clients } = this;
    try {
      return await this.once(kind, call, clients, work, timeoutMs);
    } catch (error) {
      if (errorOf(this.attempted(kind), error).code !== 'auth' || !wasRefused(error)) throw error;
      // Tokens are kept by the clients; another caller may have replaced them already.
      if (this.clients === clients) this.clients = makeClients(this.options.auth);
      return await this.once(kind, call, this.clients, work, timeoutMs);
    }
  }

  /** All pages; each is a call. */
  async list<T>(
    kind: Operation,
    call: Call,
    start: (clients: Clients, options: RequestOptions) => { byPage(): AsyncIterableIterator<T[]> },
  ): Promise<readonly T[]> {
    const found: T[] = [];
    let pages: AsyncIterableIterator<T[]> | undefined;
    for (let page = 0; ; page += 1) {
      const next = await this.call(kind, call, async (clients, options) => {
        // The first page may have been refused to clients that were replaced since.
        if (page === 0 || pages === undefined)
          pages = start(clients, { ...options, abortSignal: call.signal }).byPage();
        return pages.next();
      });
      if (next.done === true) return found;
      found.push(...next.value);
    }
  }

  /** Starts an asynchronous operation: resolves when it is accepted, not when it has ended. */
  async begin(
    kind: Operation,
    call: Call,
    start: (clients: Clients, options: RequestOptions) => Promise<unknown>,
    /** `location` gives the operation's result, `azure-asyncoperation` its state. */
    follow: 'azure-asyncoperation' | 'location' = 'azure-asyncoperation',
  ): Promise<Accepted> {
    let accepted: Accepted | undefined;
    await this.call(kind, call, (clients, options) =>
      start(clients, {
        ...options,
        onResponse: ({ status, headers }) => {
          accepted ??= {
            url:
              status === 204
                ? undefined
                : (headers.get(follow) ?? headers.get('azure-asyncoperation') ?? headers.get('location')),
            retryAfterMs: this.pollMs(headers.get('retry-after')),
            nothing: status === 204,
          };
        },
      }),
    );
    return accepted ?? { url: undefined, retryAfterMs: DEFAULT_POLL_MS, nothing: false };
  }

  /** Asks an operation how far it is. `NotFoundError`: Azure does not know it (any more). */
  async progress(what: string, url: string, call: Call): Promise<Progress> {
    const { auth } = this.options;
    // The URL may have been read from ZooKeeper; the token goes nowhere else than to Azure.
    if (!URL.canParse(url) || new URL(url).origin !== new URL(auth.endpoint).origin) {
      throw new NotFoundError(`${what}: ${JSON.stringify(url)} is no operation of ${auth.endpoint}`);
    }
    const kind: Operation = { service: 'compute', method: 'GET', operation: 'operations' };
    const answer = await this.call(kind, call, ({ compute }, { abortSignal }) =>
      compute.pipeline.sendRequest(this.http, createPipelineRequest({ url, method: 'GET', abortSignal })),
    );
    const { status, headers, bodyAsText } = answer;
    if (status === 404) throw new NotFoundError(`${what}: Azure does not know the operation ${url}`);
    if (status >= 400) {
      const said = cloudErrorIn(parse(bodyAsText));
      throw errorOf(this.attempted(kind), answerError(status, said, headers));
    }
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

  private async once<T>(
    kind: Operation,
    call: Call,
    clients: Clients,
    work: (clients: Clients, options: RequestOptions) => Promise<T>,
    timeoutMs: number,
  ): Promise<T> {
    await this.limiter.acquire(call.signal);
    return await this.measured(kind, call, timeoutMs, (signal) =>
      work(clients, { abortSignal: signal, onResponse: () => undefined }),
    );
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

function makeClients(auth: AzureAuth): Clients {
  const { ca, endpoint, subscriptionId } = auth;
  const common = {
    retryOptions: { maxRetries: 0 },
    ...(ca === undefined ? {} : { tlsOptions: { ca } }),
  };
  const credential = credentialOf(auth, common);
  const scope = `${endpoint}/.default`;
  const classic = { ...common, endpoint, credentialScopes: scope };
  return {
    compute: new ComputeManagementClient(credential, subscriptionId, {
      ...common,
      endpoint,
      credentials: { scopes: [scope] },
    }),
    network: new NetworkManagementClient(credential, subscriptionId, classic),
    resources: new ResourceManagementClient(credential, subscriptionId, classic),
  };
}

function credentialOf({ login, authorityHost }: AzureAuth, common: object): TokenCredential {
  const options = {
    ...common,
    authorityHost,
    // A login service that Microsoft's directory of clouds does not know is a private one.
    disableInstanceDiscovery: !/\.(microsoftonline\.(com|us)|chinacloudapi\.cn)$/.test(new URL(authorityHost).hostname),
  };
  switch (login.kind) {
    case 'secret':
      return new ClientSecretCredential(login.tenantId, login.clientId, login.clientSecret, options);
    case 'managed-identity':
      return new ManagedIdentityCredential(login.clientId === undefined ? {} : { clientId: login.clientId });
    case 'workload-identity': {
      const { tenantId, clientId, tokenFile } = login;
      return new WorkloadIdentityCredential({
        ...options,
        ...(tenantId === undefined ? {} : { tenantId }),
        ...(clientId === undefined ? {} : { clientId }),
        ...(tokenFile === undefined ? {} : { tokenFilePath: tokenFile }),
      });
    }
  }
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
