/** Serves all services on one port, with whatever faults the plan has for a call. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { sleep, type Clock, type RandomSource } from '@nodepool/core';
import type { CallLog, CloudCall } from '../calls.js';
import type { CallFault, FaultPlan } from '../faults.js';
import type { CloudSettings } from '../settings.js';
import type { Lag } from '../table.js';
import { newUuid } from '../text.js';
import { Refusal, type Answer, type Caller, type Exchange, type Service } from './exchange.js';
import { Router, type Match } from './router.js';

/** A body that is longer is refused rather than kept in memory. */
const MAX_BODY_BYTES = 2 ** 20;
/** As long as those of the real services, so that callers that keep connections find them open. */
const KEEP_ALIVE_MS = 900_000;

export interface CloudServerOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly services: readonly Service[];
  readonly faults: FaultPlan;
  readonly calls: CallLog;
  readonly settings: () => CloudSettings;
  /** Who a token stands for; undefined: it is not valid. */
  readonly callerOf: (token: string) => Caller | undefined;
}

export class CloudServer {
  private readonly server: Server;
  private readonly routers: ReadonlyMap<string, Router>;
  private readonly closed = new AbortController();
  private base = '';

  constructor(private readonly options: CloudServerOptions) {
    this.routers = new Map(options.services.map((service) => [service.name, new Router(service)]));
    this.server = createServer((request, response) => {
      this.serve(request, response).catch((error: unknown) => {
        // A caller that has gone needs no answer; anything else is a defect here, to be seen by whoever called.
        if (response.destroyed) return;
        response.writeHead(500, { 'content-type': 'text/plain' });
        response.end(
          `the simulation failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        );
      });
    });
    this.server.keepAliveTimeout = KEEP_ALIVE_MS;
  }

  /** Resolves with the address, e.g. `http://127.0.0.1:20345`. Rejects when the port is taken. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, '127.0.0.1', resolve);
    });
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no TCP address');
    this.base = `http://127.0.0.1:${address.port}`;
    return this.base;
  }

  /** Ends all connections. Idempotent. */
  async close(): Promise<void> {
    if (this.closed.signal.aborted) return;
    this.closed.abort(new Error('the simulated cloud was closed'));
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.base);
    const [, prefix = '', ...rest] = url.pathname.split('/');
    const router = this.routers.get(prefix);
    if (router === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain' });
      response.end(`no service here; there are: ${[...this.routers.keys()].map((name) => `/${name}`).join(', ')}\n`);
      return;
    }
    const path = `/${rest.join('/')}`;
    const method = request.method ?? 'GET';
    const found = router.find(method, path);
    const call = this.note(router.service, request, found, { method, path: path + url.search });
    const faults = this.options.faults.strike(call);
    const exchange: Exchange = {
      method,
      path,
      query: url.searchParams,
      headers: request.headers,
      params: 'route' in found ? found.params : {},
      serviceUrl: `${this.base}/${prefix}`,
      lag: lagOf(faults),
      body: 'route' in found && found.route.streams === true ? '' : await readBody(request),
      stream: request as AsyncIterable<Uint8Array>,
    };
    await this.perform(router.service, found, exchange, faults, response);
  }

  private note(
    service: Service,
    request: IncomingMessage,
    found: Match | { readonly known: boolean },
    { method, path }: { readonly method: string; readonly path: string },
  ): CloudCall {
    const operation = `${service.name}.${'route' in found ? found.route.operation : 'unknown'}`;
    const project = this.options.callerOf(tokenIn(request.headers))?.projectName;
    const call = { service: service.name, operation, method, path, project };
    this.options.calls.record(call);
    return call;
  }

  /** Does what the call asks for, unless a fault comes before; answers, unless one comes after. */
  private async perform(
    service: Service,
    found: Match | { readonly known: boolean },
    exchange: Exchange,
    faults: readonly CallFault[],
    response: ServerResponse,
  ): Promise<void> {
    const halfMs = this.latencyOf(faults) / 2;
    await this.wait(halfMs);
    const early = faults.find(isBefore);
    if (early !== undefined) {
      this.fail(service, early, response);
      return;
    }
    const answer = truncated(await this.answer(service, found, exchange), faults);
    await this.wait(halfMs);
    const late = faults.find((fault) => fault.kind === 'status' || fault.kind === 'cut' || fault.kind === 'hang');
    if (late === undefined) this.send(service, answer, response);
    else if (late.kind === 'cut' && late.when === 'during') this.sendHalf(answer, response);
    else this.fail(service, late, response);
  }

  private async answer(
    service: Service,
    found: Match | { readonly known: boolean },
    exchange: Exchange,
  ): Promise<Answer> {
    const caller = this.options.callerOf(tokenIn(exchange.headers));
    if (!('route' in found)) return caller === undefined ? service.unauthorized() : service.noRoute(found.known);
    const { route } = found;
    return await orRefusal(async () => {
      if (route.public === true) return await route.handle(exchange);
      if (caller === undefined) return service.unauthorized();
      const headers = service.common?.(exchange) ?? {};
      const answer = await orRefusal(async () => await route.handle({ ...exchange, caller }));
      return { ...answer, headers: { ...headers, ...answer.headers } };
    });
  }

  private fail(service: Service, fault: CallFault, response: ServerResponse): void {
    if (fault.kind === 'cut') response.destroy();
    if (fault.kind !== 'status') return;
    const { status, retryAfter } = fault;
    const headers = retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) };
    const answer =
      status === 401
        ? service.unauthorized()
        : service.failure(status, 'an injected fault of the simulated cloud', headers);
    this.send(service, fault.body === undefined ? answer : { ...answer, body: fault.body }, response);
  }

  private send(service: Service, answer: Answer, response: ServerResponse): void {
    response.writeHead(answer.status, {
      ...typeHeader(answer),
      'X-Openstack-Request-Id': `req-${newUuid(this.options.random)}`,
      // uWSGI, which keystone runs in, keeps no connections.
      ...(service.name === 'identity' ? { Connection: 'close' } : {}),
      ...answer.headers,
      ...(answer.status === 204 ? {} : { 'Content-Length': String(Buffer.byteLength(answer.body ?? '')) }),
    });
    response.end(answer.status === 204 ? undefined : answer.body);
  }

  private sendHalf(answer: Answer, response: ServerResponse): void {
    const body = Buffer.from(answer.body ?? '');
    response.writeHead(answer.status, { ...typeHeader(answer), 'Content-Length': String(body.length + 1) });
    response.write(body.subarray(0, body.length >> 1), () => response.destroy());
  }

  private latencyOf(faults: readonly CallFault[]): number {
    const extra = faults.reduce((sum, fault) => (fault.kind === 'latency' ? sum + fault.ms : sum), 0);
    return this.options.settings().latencyMs + extra;
  }

  private async wait(ms: number): Promise<void> {
    if (ms > 0) await sleep(this.options.clock, ms, this.closed.signal);
  }
}

/** The answer, also when it was thrown. */
async function orRefusal(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal) return error.answer;
    throw error;
  }
}

function isBefore(fault: CallFault): boolean {
  if (fault.kind === 'status') return fault.when !== 'after';
  return (fault.kind === 'cut' || fault.kind === 'hang') && fault.when === 'before';
}

function lagOf(faults: readonly CallFault[]): Lag {
  const lags = faults.filter((fault) => fault.kind === 'lag');
  return {
    lacksNewestMs: Math.max(0, ...lags.map(({ lacksNewestMs }) => lacksNewestMs ?? 0)),
    showsDeletedMs: Math.max(0, ...lags.map(({ showsDeletedMs }) => showsDeletedMs ?? 0)),
  };
}

/** The first entries of a listing, and no link to more, where a fault says so. */
function truncated(answer: Answer, faults: readonly CallFault[]): Answer {
  const fault = faults.find(({ kind }) => kind === 'truncate');
  if (fault?.kind !== 'truncate' || answer.status !== 200 || typeof answer.body !== 'string') return answer;
  const listing = Object.entries(JSON.parse(answer.body) as Record<string, unknown>)
    .filter(([key]) => !key.endsWith('_links') && key !== 'next')
    .map(([key, value]): [string, unknown] => [key, Array.isArray(value) ? value.slice(0, fault.to) : value]);
  return { ...answer, body: JSON.stringify(Object.fromEntries(listing)) };
}

function typeHeader({ type, body }: Answer): Record<string, string> {
  if (type !== undefined) return { 'Content-Type': type };
  return body === undefined ? {} : { 'Content-Type': 'application/json' };
}

function tokenIn(headers: IncomingMessage['headers']): string {
  const token = headers['x-auth-token'];
  return typeof token === 'string' ? token : '';
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.byteLength;
    if (size > MAX_BODY_BYTES) throw new Error(`a body of more than ${MAX_BODY_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
