/** Serves all services over HTTPS on one port, and applies the faults of the plan. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { isJsonObject, sleep, type Clock, type JsonObject } from '@nodepool/core';
import type { Answer, Exchange, Route } from './exchange.js';
import type { CallFault, CallLog, CloudCall, FaultPlan } from './faults.js';
import { Refusal } from './refusal.js';
import { ACCOUNT, type CloudSettings } from './settings.js';

const MAX_BODY_BYTES = 8 * 2 ** 20;
const KEEP_ALIVE_MS = 900_000;
const MINUTE_MS = 60_000;

export interface ServerOptions {
  readonly cert: string;
  readonly key: string;
  readonly clock: Clock;
  readonly routes: readonly Route[];
  readonly faults: FaultPlan;
  readonly calls: CallLog;
  readonly settings: () => CloudSettings;
  readonly isValid: (authorization: string | undefined) => boolean;
}

export class CloudServer {
  private readonly server: Server;
  private readonly closed = new AbortController();
  private base = '';
  private minute = { startedAt: 0, calls: 0 };

  constructor(private readonly options: ServerOptions) {
    const { cert, key } = options;
    this.server = createServer({ cert, key, keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
      this.serve(request, response).catch((error: unknown) => {
        // A caller that has gone needs no answer; anything else is a defect here, to be seen by whoever called.
        if (response.destroyed || response.headersSent) return;
        const message = error instanceof Error ? error.message : String(error);
        send(response, { status: 500, body: { error: { code: 'SimulationFailed', message } } });
      });
    });
  }

  /** Resolves with the address. Rejects when the port is taken. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, '127.0.0.1', resolve);
    });
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no TCP address');
    this.base = `https://localhost:${address.port}`;
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
    const method = request.method ?? 'GET';
    const found = this.route(method, url.pathname);
    const call: CloudCall = { operation: found?.route.operation ?? 'unknown', method, path: url.pathname };
    this.options.calls.record(call);
    const faults = this.options.faults.strike(call);
    const body = await readBody(request);
    const { latencyMs } = this.options.settings();
    if (latencyMs > 0) await sleep(this.options.clock, latencyMs, this.closed.signal);
    const early = faults.find((fault) => isCallFault(fault) && (fault.when ?? 'before') === 'before');
    if (early !== undefined) {
      fail(early, response);
      return;
    }
    const answer = this.answer(found, { method, url, headers: request.headers, body, lagMs: lagOf(faults) });
    const late = faults.find(isCallFault);
    if (late === undefined) send(response, answer);
    else fail(late, response);
  }

  private route(
    method: string,
    path: string,
  ): { readonly route: Route; readonly params: readonly string[] } | undefined {
    for (const route of this.options.routes) {
      const match = route.method === method ? route.path.exec(path) : null;
      if (match !== null) return { route, params: match.slice(1).map((part) => decodeURIComponent(part)) };
    }
    return undefined;
  }

  private answer(
    found: ReturnType<CloudServer['route']>,
    request: Omit<Exchange, 'query' | 'params' | 'json'>,
  ): Answer {
    const { headers, url } = request;
    if (found?.route.open !== true) {
      if (!this.options.isValid(headers['authorization'] as string | undefined)) {
        return refused(new Refusal(401, 'InvalidAuthenticationToken', 'The access token is invalid.'));
      }
      const waitSeconds = this.overLimit();
      if (waitSeconds > 0) {
        const message = 'The number of requests has exceeded the limit. Please try again later.';
        return refused(new Refusal(429, 'TooManyRequests', message, { 'Retry-After': String(waitSeconds) }));
      }
    }
    if (found === undefined)
      return refused(new Refusal(404, 'InvalidResourceType', `There is nothing at ${request.method} ${url.pathname}.`));
    if (url.pathname.startsWith('/subscriptions/') && !url.searchParams.has('api-version')) {
      return refused(
        new Refusal(
          400,
          'MissingApiVersionParameter',
          'The api-version query parameter (?api-version=) is required for all requests.',
        ),
      );
    }
    try {
      const answer = found.route.handle({ ...request, ...this.checked(found, request) });
      const { published } = found.route;
      const problem = published?.definitions.answerProblem(published.name, answer.status, answer.body);
      if (problem === undefined) return answer;
      throw new Error(`the simulation would answer ${found.route.operation} as Azure does not: ${problem}`);
    } catch (error) {
      if (error instanceof Refusal) return refused(error);
      throw error;
    }
  }

  /** Throws a `Refusal` unless path, query and body are as published. */
  private checked(
    { route, params }: NonNullable<ReturnType<CloudServer['route']>>,
    { url, body }: Omit<Exchange, 'query' | 'params' | 'json'>,
  ): Pick<Exchange, 'query' | 'params' | 'json'> {
    const { published } = route;
    const query = url.searchParams;
    const json = (): JsonObject => jsonIn(body);
    if (published === undefined) return { query, params, json };
    const { definitions, name, names } = published;
    const inPath = new Map(names.map((key, index) => [key, params[index] ?? '']));
    const problem =
      definitions.parameterProblem(name, 'url', inPath) ?? definitions.parameterProblem(name, 'query', new Map(query));
    if (problem !== undefined) throw new Refusal(400, 'InvalidParameter', `The request is invalid: ${problem}.`);
    if (inPath.get('subscriptionId') !== ACCOUNT.subscriptionId) {
      throw new Refusal(404, 'SubscriptionNotFound', `The subscription '${params[0] ?? ''}' could not be found.`);
    }
    const content = body.length === 0 ? undefined : json();
    const wrong = definitions.requestProblem(name, content);
    if (wrong !== undefined) {
      throw new Refusal(400, 'InvalidRequestContent', `The request content was invalid: ${wrong}.`);
    }
    return { query, params: params.slice(1), json: () => content ?? {} };
  }

  /** Seconds to wait; 0: none. */
  private overLimit(): number {
    const now = this.options.clock.monotonic();
    if (now - this.minute.startedAt >= MINUTE_MS) this.minute = { startedAt: now, calls: 0 };
    this.minute.calls += 1;
    if (this.minute.calls <= this.options.settings().callsPerMinute) return 0;
    return Math.ceil((this.minute.startedAt + MINUTE_MS - now) / 1000);
  }
}

type Strike = Exclude<CallFault, { readonly kind: 'lag' }>;

function isCallFault(fault: CallFault): fault is Strike {
  return fault.kind !== 'lag';
}

function lagOf(faults: readonly CallFault[]): number {
  return Math.max(0, ...faults.map((fault) => (fault.kind === 'lag' ? fault.ms : 0)));
}

function fail(fault: CallFault, response: ServerResponse): void {
  if (fault.kind === 'cut') response.destroy();
  if (fault.kind !== 'status') return;
  const { status, code, message = 'an injected fault of the simulated cloud', retryAfter } = fault;
  send(
    response,
    refused(new Refusal(status, code, message, retryAfter === undefined ? {} : { 'Retry-After': String(retryAfter) })),
  );
}

function refused(refusal: Refusal): Answer {
  const { status, body, headers } = refusal;
  return { status, body, headers };
}

function send(response: ServerResponse, { status, body, text, headers }: Answer): void {
  const content = text ?? (body === undefined ? '' : JSON.stringify(body));
  const type = text === undefined ? 'application/json; charset=utf-8' : 'application/xml';
  response.writeHead(status, {
    ...headers,
    ...(content === '' ? {} : { 'Content-Type': type }),
    ...(status === 204 ? {} : { 'Content-Length': String(Buffer.byteLength(content)) }),
  });
  response.end(status === 204 ? undefined : content);
}

function jsonIn(body: Buffer): JsonObject {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (isJsonObject(value)) return value;
  } catch {
    throw new Refusal(400, 'InvalidRequestContent', 'The request content was invalid and could not be deserialized.');
  }
  throw new Refusal(400, 'InvalidRequestContent', 'The request content was no object.');
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.byteLength;
    if (size > MAX_BODY_BYTES) throw new Error(`a body of more than ${MAX_BODY_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
