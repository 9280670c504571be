/**
 * Answers calls inside this process, without HTTP: for clients on a virtual clock, which only moves when no promise is
 * pending. Faults act as they do on the server; an answer that ends in the middle is a lost connection.
 */

import { sleep, untilAborted } from '@nodepool/core';
import type { CloudCall } from './calls.js';
import type { CallFault, VendorFault } from './faults.js';
import { ApiError, type Answer, type RequestContext, type Route } from './request-context.js';
import type { CloudServerOptions, StatusFaultOf } from './server.js';

type Fetch = typeof globalThis.fetch;

interface Found<F extends VendorFault> {
  readonly route: Route<F>;
  readonly params: Readonly<Record<string, string>>;
}

export class InProcessServer<F extends VendorFault, C extends CloudCall> {
  /** True while connections are refused. */
  isRefusing = false;
  private readonly patterns: readonly { readonly route: Route<F>; readonly pattern: RegExp }[];
  private readonly closed = new AbortController();

  constructor(private readonly options: CloudServerOptions<F, C>) {
    this.patterns = options.routes.map((route) => ({ route, pattern: patternOf(route.path) }));
  }

  /** Rejects if the connection fails, and with the reason of the signal. */
  readonly fetch: Fetch = async (input, init = {}) => {
    const { signal } = init;
    signal?.throwIfAborted();
    if (this.isRefusing) throw refused();
    const ended = new AbortController();
    const end = (): void => ended.abort(new Error('the call has ended'));
    signal?.addEventListener('abort', end, { once: true });
    try {
      const answer = this.answer(new URL(input instanceof Request ? input.url : input), init, ended.signal);
      return signal == null ? await answer : await untilAborted(answer, signal);
    } finally {
      signal?.removeEventListener('abort', end);
      end();
    }
  };

  close(): void {
    this.closed.abort(new Error('the simulated cloud was closed'));
  }

  private async answer(url: URL, init: RequestInit, ended: AbortSignal): Promise<Response> {
    const { describe, calls, faults, form, state } = this.options;
    const method = init.method ?? 'GET';
    const found = this.find(method, url.pathname);
    const body = typeof init.body === 'string' ? Buffer.from(init.body) : Buffer.alloc(0);
    const received: RequestContext<F> = {
      ...{ operation: found?.route.operation, method, url, query: url.searchParams, params: found?.params ?? {} },
      headers: Object.fromEntries(new Headers(init.headers)),
      ...{ body, stream: [body] as unknown as AsyncIterable<Uint8Array>, faults: [], signal: this.closed.signal },
      ended: () => ended,
    };
    const call = describe(
      { operation: received.operation ?? 'unknown', method, path: url.pathname + url.search },
      received,
    );
    calls.record(call);
    const context = { ...received, faults: faults.faultsOf(call) };
    const added = context.faults.reduce((sum, fault) => sum + (isKind(fault, 'latency') ? fault.ms : 0), 0);
    const halfMs = (state.settings.latencyMs + added) / 2;
    await this.pause(halfMs);
    const early = context.faults.find((fault) => whenOf(fault) === 'before');
    if (early !== undefined) return await this.fail(early, context);
    const answer = await this.handle(found?.route, context);
    await this.pause(halfMs);
    const late = context.faults.find((fault) => whenOf(fault) !== undefined);
    if (late !== undefined) return await this.fail(late, context);
    // The connection may have been cut meanwhile.
    if (this.isRefusing) throw refused();
    return this.response(answer, form.headers?.(context));
  }

  private async handle(route: Route<F> | undefined, context: RequestContext<F>): Promise<Answer> {
    try {
      if (route !== undefined) return await route.handle(context);
      return this.options.form.noRoute(context, this.patterns.some(({ pattern }) => pattern.test(context.url.pathname))); // prettier-ignore
    } catch (error) {
      if (error instanceof ApiError) return error.answer;
      throw error;
    }
  }

  private async fail(fault: F, context: RequestContext<F>): Promise<Response> {
    if (isKind(fault, 'hang')) return await new Promise<never>(() => undefined);
    if (isKind(fault, 'proxy')) {
      const type = fault.json === undefined ? 'text/html' : 'application/json';
      const text = fault.json === undefined ? '<html><body>a proxy</body></html>' : JSON.stringify(fault.json);
      return new Response(text, { status: fault.status, headers: { 'content-type': type } });
    }
    if (isKind(fault, 'redirect')) {
      const location = typeof fault.to === 'string' ? fault.to : fault.to(context.url);
      return new Response(null, { status: fault.status, headers: { location } });
    }
    if (isKind(fault, 'status')) {
      const wait = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) };
      const answer = this.options.form.fault(fault as unknown as StatusFaultOf<F>, context);
      return this.response(answer, wait);
    }
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }) });
  }

  private response({ status, body, type, headers }: Answer, more: Readonly<Record<string, string>> = {}): Response {
    const { state, form } = this.options;
    const date = new Date(state.clock.now() + (state.settings.clockAheadMs ?? 0)).toUTCString();
    const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
    return new Response(status === 204 ? null : text, {
      status,
      headers: { date, ...more, 'content-type': type ?? form.jsonType, ...headers },
    });
  }

  private find(method: string, path: string): Found<F> | undefined {
    for (const { route, pattern } of this.patterns) {
      const match = route.method === method ? pattern.exec(path) : null;
      if (match === null) continue;
      const params = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
      return { route, params: Object.fromEntries(params) as Readonly<Record<string, string>> };
    }
    return undefined;
  }

  private async pause(ms: number): Promise<void> {
    if (ms > 0) await sleep(this.options.state.clock, ms, this.closed.signal);
  }
}

function refused(): TypeError {
  const cause = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1'), { code: 'ECONNREFUSED' });
  return new TypeError('fetch failed', { cause });
}

function patternOf(path: string): RegExp {
  const pattern = path.replaceAll('.', String.raw`\.`).replaceAll(/:(\w+)/g, '(?<$1>[^/]+)');
  return new RegExp(`^${pattern}/?$`);
}

function isKind<K extends CallFault['kind']>(
  fault: VendorFault,
  kind: K,
): fault is Extract<CallFault, { readonly kind: K }> {
  return fault.kind === kind;
}

/** Returns when a fault ends the call; undefined for faults that do not. */
function whenOf(fault: VendorFault): 'before' | 'during' | 'after' | undefined {
  if (!['status', 'proxy', 'redirect', 'cut', 'hang'].includes(fault.kind)) return undefined;
  return (fault as { readonly when?: 'before' | 'during' | 'after' }).when ?? 'before';
}
