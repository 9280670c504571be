/** Serves the cloud on one port: credentials, limits, the published definitions, and whatever faults the plan has for a call. */

import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { sleep } from '@nodepool/core';
import type { Definitions } from './definitions.js';
import type { CallFault, CloudCall, FaultPlan } from './faults.js';
import type { Ground } from './ground.js';
import { Refusal, invalid } from './refusal.js';
import type { Answer, Exchange, Route } from './routes.js';
import { TOKEN_PATH, type Tokens } from './tokens.js';

export interface CloudServerOptions {
  readonly ground: Ground;
  readonly routes: readonly Route[];
  readonly definitions: Readonly<Record<Route['api'], Definitions>>;
  readonly faults: FaultPlan;
  readonly tokens: Tokens;
  readonly onCall: (call: CloudCall) => void;
}

interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

export class CloudServer {
  private readonly server: Server;
  private readonly patterns: readonly {
    readonly route: Route;
    readonly httpMethod: string;
    readonly pattern: RegExp;
  }[];
  private readonly closed = new AbortController();
  private recent: number[] = [];

  constructor(private readonly options: CloudServerOptions) {
    // All calls that wait for something watch it.
    setMaxListeners(0, this.closed.signal);
    this.patterns = options.routes.map((route) => {
      const { httpMethod, path, uploadPath } = options.definitions[route.api].method(route.operation);
      if (route.upload === undefined) return { route, httpMethod, pattern: patternOf(path) };
      const pattern = patternOf((uploadPath ?? path).replace('/resumable/', '/'));
      return { route, httpMethod: route.upload.httpMethod, pattern };
    });
    this.server = createServer((request, response) => {
      this.serve(request, response).catch((error: unknown) => {
        // A caller that has gone needs no answer; anything else is a defect here, to be seen by whoever called.
        if (response.destroyed) return;
        response.writeHead(500, { 'content-type': 'text/plain' });
        response.end(`the simulation failed: ${error instanceof Error ? (error.stack ?? '') : String(error)}`);
      });
    });
  }

  /** Resolves with the port. Rejects when it is taken. */
  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, '127.0.0.1', resolve);
    });
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no TCP address');
    return address.port;
  }

  /** Ends all connections. Idempotent. */
  async close(): Promise<void> {
    if (this.closed.signal.aborted) return;
    this.closed.abort(new Error('the simulated cloud was closed'));
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { ground, onCall, faults } = this.options;
    const url = new URL(request.url ?? '/', ground.url());
    const body = await readBody(request);
    const method = request.method ?? 'GET';
    const match = this.find(method, url.pathname);
    const operation =
      url.pathname === TOKEN_PATH ? 'token' : (match?.route.upload?.name ?? match?.route.operation ?? 'unknown');
    const call: CloudCall = { operation, method, path: url.pathname + url.search };
    onCall(call);
    const fault = faults.strike(call);
    const halfMs = ground.settings().latencyMs / 2;
    if (halfMs > 0) await sleep(ground.clock, halfMs, this.closed.signal);
    if (fault !== undefined && isBefore(fault)) {
      fail(fault, response);
      return;
    }
    const answer = await this.answer(match, request, url, body, fault);
    if (halfMs > 0) await sleep(ground.clock, halfMs, this.closed.signal);
    if (fault === undefined || fault.kind === 'operation-error') send(response, answer);
    else fail(fault, response);
  }

  private async answer(
    match: Match | undefined,
    request: IncomingMessage,
    url: URL,
    body: Buffer,
    fault: CallFault | undefined,
  ): Promise<Answer> {
    if (url.pathname === TOKEN_PATH) return this.options.tokens.grant(body.toString('utf8'));
    try {
      this.options.tokens.check(request.headers.authorization);
      if (match === undefined) throw new Refusal(404, 'notFound', `Not found: ${url.pathname}`);
      if (match.route.api === 'compute') this.limit();
      this.checkRequest(match, url.searchParams, body);
      const exchange: Exchange = {
        params: match.params,
        query: url.searchParams,
        headers: request.headers,
        body,
        signal: this.closed.signal,
        failure: fault?.kind === 'operation-error' ? { code: fault.code, message: fault.message } : undefined,
      };
      return this.checked(match.route, await match.route.handle(exchange));
    } catch (error) {
      if (error instanceof Refusal) return { status: error.status, message: error.body };
      throw error;
    }
  }

  private checkRequest({ route, params }: Match, query: URLSearchParams, body: Buffer): void {
    const definitions = this.options.definitions[route.api];
    const { request } = definitions.method(route.operation);
    // The session of an upload replaces the parameters of its method.
    const isPartOfUpload = route.upload !== undefined && route.upload.httpMethod !== 'POST';
    const problem =
      definitions.problemWithParameters(route.operation, params, 'path') ??
      (isPartOfUpload ? undefined : definitions.problemWithParameters(route.operation, parametersIn(query), 'query')) ??
      (isPartOfUpload || request === undefined ? undefined : problemWithBody(definitions, request, body));
    if (problem !== undefined) throw invalid(problem);
  }

  /** An answer that Google's definitions do not allow is a defect of the simulation. */
  private checked({ api, operation }: Route, answer: Answer): Answer {
    const definitions = this.options.definitions[api];
    const { response } = definitions.method(operation);
    if (response === undefined || answer.message === undefined) return answer;
    const problem = definitions.problemWith(answer.message, response);
    if (problem !== undefined) throw new Error(`the answer to ${operation} is not as published: ${problem}`);
    return answer;
  }

  private limit(): void {
    const { clock, settings } = this.options.ground;
    const { callsPerSecond } = settings();
    if (callsPerSecond === Infinity) return;
    const now = clock.monotonic();
    this.recent = this.recent.filter((at) => at > now - 1000);
    if (this.recent.length >= callsPerSecond) {
      throw new Refusal(403, 'rateLimitExceeded', 'Rate Limit Exceeded', 'usageLimits');
    }
    this.recent.push(now);
  }

  private find(method: string, path: string): Match | undefined {
    for (const { route, httpMethod, pattern } of this.patterns) {
      if (httpMethod !== method) continue;
      const groups = pattern.exec(path)?.groups;
      if (groups === undefined) continue;
      return {
        route,
        params: Object.fromEntries(Object.entries(groups).map(([key, value]) => [key, decodeURIComponent(value)])),
      };
    }
    return undefined;
  }
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
}

/** Throws for a parameter that is given twice, and for a partial answer, which the simulation cannot give. */
function parametersIn(query: URLSearchParams): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {};
  for (const [name, value] of query) {
    if (name in parameters) throw invalid(`Parameter "${name}" is given twice`);
    if (name === 'fields') throw invalid('Partial answers (fields) are not simulated');
    parameters[name] = value;
  }
  return parameters;
}

function problemWithBody(definitions: Definitions, type: string, body: Buffer): string | undefined {
  const problem = definitions.problemWith(jsonOrRefusal(body), type);
  return problem === undefined ? undefined : `Invalid JSON payload received: ${problem}`;
}

function isBefore(fault: CallFault): boolean {
  if (fault.kind === 'operation-error') return false;
  return fault.kind === 'status' ? fault.when !== 'after' : fault.when === 'before';
}

function fail(fault: CallFault, response: ServerResponse): void {
  if (fault.kind === 'cut') response.destroy();
  if (fault.kind !== 'status') return;
  const { status, reason = 'backendError', message = 'an injected fault of the simulated cloud', retryAfter } = fault;
  const headers: Record<string, string> = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
  send(response, { status, message: new Refusal(status, reason, message).body, headers });
}

function send(response: ServerResponse, { status, message, headers = {} }: Answer): void {
  const text = message === undefined ? '' : JSON.stringify(message);
  response.writeHead(status, {
    ...(message === undefined ? {} : { 'content-type': 'application/json; charset=UTF-8' }),
    ...headers,
    ...(status === 204 ? {} : { 'content-length': String(Buffer.byteLength(text)) }),
  });
  response.end(status === 204 ? undefined : text);
}

function jsonOrRefusal(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw invalid('Invalid JSON payload received');
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces);
}
