/** A client of `nodepool-gateway`. */

import { answerText, reasonOf, sleep, systemClock, systemRandom, type Clock, type RandomSource } from '@nodepool/core';
import type { LeaseDocument, LeaseOutcome, LeaseState, NewLease, ProblemDocument } from './documents.js';
import { eventsOf } from './server-sent-events.js';

export interface LeaseClientOptions {
  /** Address of the gateway or its load balancer, e.g. `https://nodepool.example.org:8007`. */
  readonly url: string;
  /** The token, or a function that returns it for each request, e.g. from a file that is renewed. */
  readonly token: string | (() => string | Promise<string>);
  /** Milliseconds after which an attempt counts as failed. Default 15 s. */
  readonly attemptTimeoutMs?: number;
  /** Milliseconds for which a request is repeated. Default 60 s. */
  readonly retryForMs?: number;
  /** Default: the fetch of Node.js. */
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
  readonly random?: RandomSource;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /** Text that is the same if the creation is repeated, also by another process. Default: random. */
  readonly key?: string;
}

export interface ListOptions extends CallOptions {
  readonly state?: LeaseState;
  readonly name?: string;
}

export interface ReleaseOptions extends CallOptions {
  readonly outcome?: LeaseOutcome;
  readonly comment?: string;
}

/** The gateway has refused a request. */
export class LeaseRequestError extends Error {
  /** Stable, e.g. `not-found`, `conflict`, `quota`, `forbidden`. */
  readonly code: string;
  readonly status: number;
  constructor(
    readonly problem: ProblemDocument,
    what: string,
  ) {
    super(`${what}: ${problem.title}: ${problem.detail}`);
    this.name = 'LeaseRequestError';
    this.code = problem.code;
    this.status = problem.status;
  }
}

/** The gateway cannot be reached. */
export class GatewayUnreachableError extends Error {
  readonly code = 'gateway-unreachable';
  constructor(url: string, cause: unknown) {
    super(`the gateway ${url} cannot be reached: ${reasonOf(cause)}`, { cause });
    this.name = 'GatewayUnreachableError';
  }
}

/** The lease ended before it had nodes, or while it was followed. */
export class LeaseEndedError extends Error {
  readonly code = 'lease-ended';
  constructor(readonly lease: LeaseDocument) {
    const reasons = lease.reasons.length === 0 ? '' : `: ${lease.reasons.join('; ')}`;
    super(`lease ${lease.id} ended: ${lease.end?.reason ?? lease.state}${reasons}`);
    this.name = 'LeaseEndedError';
  }
}

/** Statuses of answers after which the same request can succeed. */
const TRANSIENT: readonly number[] = [408, 502, 503, 504];
const RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
const MAX_ANSWER_BYTES = 20_000_000;

interface RequestSpec extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * All methods repeat a request while the gateway cannot be reached or asks for it. Requests that the gateway refuses
 * reject with `LeaseRequestError`.
 */
export class LeaseClient {
  private readonly clock: Clock;
  private readonly random: RandomSource;
  private readonly url: string;

  constructor(private readonly options: LeaseClientOptions) {
    this.clock = options.clock ?? systemClock;
    this.random = options.random ?? systemRandom;
    this.url = options.url.replace(/\/+$/, '');
  }

  /** Creates a lease, exactly once even if an answer is lost. */
  create(lease: NewLease, { signal, key = this.random.uuidHex() }: CreateOptions = {}): Promise<LeaseDocument> {
    const headers = { 'Idempotency-Key': key };
    return this.json({ method: 'POST', path: '/v1/leases', body: lease, headers, ...given(signal) });
  }

  get(id: string, { signal }: CallOptions = {}): Promise<LeaseDocument> {
    return this.json({ method: 'GET', path: leasePath(id), ...given(signal) });
  }

  /** Yields the leases of the token's tenant, newest first. */
  async *list({ state, name, signal }: ListOptions = {}): AsyncGenerator<LeaseDocument, void, undefined> {
    for (let after: string | null | undefined; after !== null;) {
      const query = queryOf({ state, name, after });
      const page: { readonly leases: readonly LeaseDocument[]; readonly next: string | null } = await this.json({
        method: 'GET',
        path: `/v1/leases${query}`,
        ...given(signal),
      });
      yield* page.leases;
      after = page.next;
    }
  }

  /** Resolves with the labels that the token may use and that launchers offer. */
  async labels({ signal }: CallOptions = {}): Promise<readonly string[]> {
    const answer: { readonly labels: readonly string[] } = await this.json({
      method: 'GET',
      path: '/v1/labels',
      ...given(signal),
    });
    return answer.labels;
  }

  /** Renews a lease: it expires `lifetime` seconds from now, by default its own lifetime. */
  renew(id: string, { lifetime, signal }: CallOptions & { readonly lifetime?: number } = {}): Promise<LeaseDocument> {
    const body = lifetime === undefined ? {} : { lifetime };
    return this.json({ method: 'PUT', path: `${leasePath(id)}/renew`, body, ...given(signal) });
  }

  /** Ends a lease and holds its nodes for inspection. */
  hold(
    id: string,
    { seconds, outcome, comment, signal }: ReleaseOptions & { readonly seconds: number },
  ): Promise<LeaseDocument> {
    const body = { seconds, ...defined({ outcome, comment }) };
    return this.json({ method: 'POST', path: `${leasePath(id)}/hold`, body, ...given(signal) });
  }

  /** Releases a lease. Releasing it again changes nothing. */
  release(id: string, { outcome, comment, signal }: ReleaseOptions = {}): Promise<LeaseDocument> {
    return this.json({
      method: 'DELETE',
      path: `${leasePath(id)}${queryOf({ outcome, comment })}`,
      ...given(signal),
    });
  }

  /** Yields the lease now and after each change, until it has ended. Connects again when the stream ends. */
  async *follow(id: string, { signal }: CallOptions = {}): AsyncGenerator<LeaseDocument, void, undefined> {
    let last = '';
    for (;;) {
      const answer = await this.request({ method: 'GET', path: `${leasePath(id)}/events`, ...given(signal) }, true);
      try {
        for await (const { event, data } of eventsOf(answer, this.clock, signal)) {
          if (event !== 'lease' || data === last) continue;
          last = data;
          const lease = JSON.parse(data) as LeaseDocument;
          yield lease;
          if (lease.state === 'ended') return;
        }
      } catch {
        // A broken stream: the next one begins with the present state.
        signal?.throwIfAborted();
      }
      await sleep(this.clock, RETRY_MS, signal);
    }
  }

  /** Resolves with the lease once it has its nodes. Rejects with `LeaseEndedError` if it ends before. */
  async ready(
    id: string,
    { signal, onChange }: CallOptions & { readonly onChange?: (lease: LeaseDocument) => void } = {},
  ): Promise<LeaseDocument> {
    for await (const lease of this.follow(id, given(signal))) {
      onChange?.(lease);
      if (lease.state === 'ready') return lease;
      if (lease.state === 'ending' || lease.state === 'ended') throw new LeaseEndedError(lease);
    }
    throw new LeaseEndedError(await this.get(id, given(signal)));
  }

  private async json<T>(spec: RequestSpec): Promise<T> {
    const answer = await this.request(spec, false);
    return JSON.parse(await answer.text()) as T;
  }

  /** Sends a request until it is answered. The caller reads the body. */
  private async request(spec: RequestSpec, stream: boolean): Promise<Response> {
    const { retryForMs = 60_000, token } = this.options;
    const start = this.clock.monotonic();
    for (let failures = 1; ; failures++) {
      let waitMs = Math.min(RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS) * (0.5 + this.random.next() / 2);
      let failure: unknown;
      // An error of the caller's function is not one of the gateway.
      const bearer = typeof token === 'string' ? token : await token();
      try {
        const answer = await this.attempt(spec, bearer, stream);
        if (answer.ok) return answer;
        const error = new LeaseRequestError(await problemOf(answer), `${spec.method} ${spec.path}`);
        const isBusy = answer.status === 429 && error.code !== 'quota';
        if (!isBusy && !TRANSIENT.includes(answer.status)) throw error;
        waitMs = Math.max(waitMs, Number(answer.headers.get('Retry-After') ?? 0) * 1000 || 0);
        failure = error;
      } catch (error) {
        if (error instanceof LeaseRequestError) throw error;
        spec.signal?.throwIfAborted();
        failure = new GatewayUnreachableError(this.url, error);
      }
      if (this.clock.monotonic() - start + waitMs > retryForMs) throw failure;
      await sleep(this.clock, waitMs, spec.signal);
    }
  }

  private async attempt(
    { method, path, body, headers, signal }: RequestSpec,
    token: string,
    stream: boolean,
  ): Promise<Response> {
    const { attemptTimeoutMs = 15_000, fetch: send = fetch } = this.options;
    const timeout = new AbortController();
    const timer = this.clock.schedule(attemptTimeoutMs, () =>
      timeout.abort(new Error(`no answer within ${attemptTimeoutMs / 1000} s`)),
    );
    const ended = signal === undefined ? timeout.signal : AbortSignal.any([timeout.signal, signal]);
    try {
      const answer = await send(`${this.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          accept: stream ? 'text/event-stream' : 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // A redirect would send the token to another server.
        redirect: 'error',
        signal: ended,
      });
      if (stream && answer.ok) return answer;
      const text = await answerText(answer.body, { maxBytes: MAX_ANSWER_BYTES, signal: ended });
      return new Response(answer.status === 204 ? null : text, { status: answer.status, headers: answer.headers });
    } finally {
      timer.cancel();
    }
  }
}

/** Returns the problem of an answer; that of another server, such as a proxy, by its status. */
async function problemOf(answer: Response): Promise<ProblemDocument> {
  const { status } = answer;
  try {
    const problem: unknown = JSON.parse(await answer.text());
    if (typeof problem === 'object' && problem !== null && 'code' in problem) return problem as ProblemDocument;
  } catch {
    // Not JSON: an answer of another server.
  }
  return {
    type: 'about:blank',
    title: `status ${status}`,
    status,
    detail: 'the answer is no problem details',
    code: 'http',
  };
}

function leasePath(id: string): string {
  return `/v1/leases/${encodeURIComponent(id)}`;
}

function queryOf(values: Readonly<Record<string, string | null | undefined>>): string {
  const text = new URLSearchParams(defined(values)).toString();
  return text === '' ? '' : `?${text}`;
}

function defined(values: Readonly<Record<string, string | null | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (value == null ? [] : [[key, value]])));
}

function given(signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? {} : { signal };
}
