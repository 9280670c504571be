/** Serves the routes of a simulated cloud on one port and applies its fault plan. */

import { once, setMaxListeners } from 'node:events';
import { Server as TlsServer } from 'node:https';
import { Readable } from 'node:stream';
import { sleep } from '@nodepool/core';
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { CallLog, CloudCall } from './calls.js';
import type { CloudState } from './cloud-state.js';
import type { CallFault, FaultPlan, StatusFault, VendorFault } from './faults.js';
import { ApiError, type Answer, type RequestContext, type Route } from './request-context.js';

/** Time for which idle connections stay open (ms): longer than any client keeps them, as with real services. */
const KEEP_ALIVE_MS = 900_000;
const HOST = '127.0.0.1';
const DEFAULT_BODY_LIMIT = 2 ** 20;
const MAX_PARAM_LENGTH = 4096;
const PROXY_PAGE = '<html><body><h1>The proxy has no answer for you</h1></body></html>\n';

/** The members of `F` that are status faults. */
export type StatusFaultOf<F extends VendorFault> = Extract<F, { readonly kind: 'status' }>;

/** A vendor's answer format. */
export interface VendorForm<F extends VendorFault> {
  /** Content-Type of JSON. */
  readonly jsonType: string;
  /** Answers a call without a matching route; `pathExists` is true if the path has a route with another method. */
  noRoute(context: RequestContext<F>, pathExists: boolean): Answer;
  /** Answers with a planned fault; the server adds `Retry-After`. */
  fault(fault: StatusFaultOf<F>, context: RequestContext<F>): Answer;
  /** Answers with an error outside of handlers: a protocol violation, or (500) a defect of the simulation. */
  failure(status: number, message: string, context: RequestContext<F>): Answer;
  /** Headers of all answers. */
  headers?(context: RequestContext<F>): Readonly<Record<string, string>>;
}

export interface CloudServerOptions<F extends VendorFault, C extends CloudCall> {
  /** Half of the latency precedes the effect of a call, half follows it. */
  readonly state: CloudState<{ readonly latencyMs: number; readonly clockAheadMs?: number }>;
  readonly routes: readonly Route<F>[];
  readonly form: VendorForm<F>;
  readonly faults: FaultPlan<F, C>;
  readonly calls: CallLog<C>;
  /** Describes a call for the log and for fault rules. */
  readonly describe: (call: CloudCall, context: RequestContext<F>) => C;
  /** Maximum size of a body in bytes. Default 1 MiB. */
  readonly bodyLimit?: number;
  /** Default: paths are case-sensitive. */
  readonly ignoresCase?: boolean;
  /** Default: HTTP without TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** The part of a server that connects it to its clients. */
export type CloudConnections = Pick<CloudServer<VendorFault, CloudCall>, 'refuse' | 'accept'>;

/** Serves the routes of a cloud. It applies the faults of `CallFault` and leaves all others to the handlers. */
export class CloudServer<F extends VendorFault, C extends CloudCall> {
  private readonly app;
  private readonly paths: readonly RegExp[];
  private readonly closed = new AbortController();
  private port = 0;

  constructor(private readonly options: CloudServerOptions<F, C>) {
    // Every waiting call listens for the abort.
    setMaxListeners(0, this.closed.signal);
    const { routes, ignoresCase = false } = options;
    this.paths = [...new Set(routes.map(({ path }) => path))].map((path) => patternOf(path, ignoresCase));
    this.app = fastify({
      https: options.tls ?? null,
      bodyLimit: options.bodyLimit ?? DEFAULT_BODY_LIMIT,
      exposeHeadRoutes: false,
      forceCloseConnections: true,
      keepAliveTimeout: KEEP_ALIVE_MS,
      routerOptions: {
        caseSensitive: !ignoresCase,
        ignoreDuplicateSlashes: true,
        ignoreTrailingSlash: true,
        maxParamLength: MAX_PARAM_LENGTH,
      },
    });
    this.app.removeAllContentTypeParsers();
    this.app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    this.app.setErrorHandler((error, request, reply) => this.sendError(error, request, reply));
    this.app.setNotFoundHandler((request, reply) => this.perform(undefined, request, reply));
    const serve = (app: FastifyInstance, route: Route<F>): void =>
      void app.route({
        method: route.method,
        url: route.path,
        handler: (request, reply) => this.perform(route, request, reply),
      });
    for (const route of routes) if (route.streams !== true) serve(this.app, route);
    void this.app.register(async (app) => {
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
      for (const route of routes) if (route.streams === true) serve(app, route);
    });
  }

  /** Resolves with the port. Rejects if it is in use. */
  async listen(port: number): Promise<number> {
    await this.app.listen({ port, host: HOST });
    const [address] = this.app.addresses();
    if (typeof address !== 'object') throw new Error('the server has no TCP address');
    this.port = address.port;
    return address.port;
  }

  /** Closes all connections, and refuses new ones until `accept`. */
  refuse(): void {
    this.app.server.close();
    this.app.server.closeAllConnections();
  }

  /** Presents another certificate to new connections, and closes all others. The server must use TLS. */
  present(tls: { readonly cert: string; readonly key: string }): void {
    const { server } = this.app;
    if (!(server instanceof TlsServer)) throw new Error('the simulated cloud has no TLS');
    server.setSecureContext(tls);
    server.closeAllConnections();
  }

  /** Accepts connections again after `refuse`. */
  async accept(): Promise<void> {
    this.app.server.listen(this.port, HOST);
    await once(this.app.server, 'listening');
  }

  /** Closes all connections. Idempotent. */
  async close(): Promise<void> {
    if (this.closed.signal.aborted) return;
    this.closed.abort(new Error('the simulated cloud was closed'));
    await this.app.close();
  }

  /** Runs the handler unless a fault precedes its effect, and answers unless a fault follows it. */
  private async perform(
    route: Route<F> | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { describe, calls, faults } = this.options;
    const received = this.contextOf(request, route?.operation, () => endOf(reply));
    const { method, url } = received;
    const operation = route?.operation ?? 'unknown';
    const call = describe({ operation, method, path: url.pathname + url.search }, received);
    calls.record(call);
    calls.recordHeaders(received.headers);
    const context = { ...received, faults: faults.faultsOf(call) };
    const halfMs = this.latencyOf(context) / 2;
    await this.pause(halfMs);
    const early = context.faults.find((fault) => isFailing(fault) && whenOf(fault) === 'before');
    if (early !== undefined) return this.fail(early, context, undefined, reply);
    const answered = await this.answerOf(route, context);
    const retyped = context.faults.find(isContentType);
    const answer = retyped === undefined ? answered : { ...answered, type: retyped.type };
    await this.pause(halfMs);
    const late = context.faults.find(isFailing);
    return late === undefined ? this.send(answer, context, reply) : this.fail(late, context, answer, reply);
  }

  private async answerOf(route: Route<F> | undefined, context: RequestContext<F>): Promise<Answer> {
    try {
      if (route !== undefined) return await route.handle(context);
      const { pathname } = context.url;
      return this.options.form.noRoute(
        context,
        this.paths.some((path) => path.test(pathname)),
      );
    } catch (error) {
      if (error instanceof ApiError) return error.answer;
      throw error;
    }
  }

  private fail(fault: F, context: RequestContext<F>, answer: Answer | undefined, reply: FastifyReply): FastifyReply {
    if (isStatus(fault)) {
      const { headers, ...failure } = this.options.form.fault(fault, context);
      const wait = fault.retryAfter === undefined ? {} : { 'Retry-After': String(fault.retryAfter) };
      return this.send({ ...failure, headers: { ...headers, ...wait } }, context, reply);
    }
    if (isProxy(fault)) {
      const { status, json, echo = false } = fault;
      const page = echo ? echoOf(context) : PROXY_PAGE;
      const type = json === undefined ? 'text/html' : 'application/json';
      return reply
        .code(status)
        .header('Content-Type', type)
        .send(json === undefined ? page : `${JSON.stringify(json)}\n`);
    }
    if (isRedirect(fault)) {
      const to = typeof fault.to === 'string' ? fault.to : fault.to(context.url);
      return reply.code(fault.status).headers(this.dateHeader()).header('Location', to).send();
    }
    if (fault.kind === 'endless') {
      return reply.code(200).header('Content-Type', this.options.form.jsonType).send(Readable.from(endless()));
    }
    reply.hijack();
    if (isCut(fault) && fault.when === 'during' && answer !== undefined) this.sendHalf(answer, reply);
    else if (isCut(fault)) reply.raw.destroy();
    return reply;
  }

  /** Sends the vendor's error for an unexpected exception. */
  private sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { statusCode = 500, stack = String(error) } = error instanceof Error ? (error as FastifyError) : {};
    const message = statusCode < 500 ? String(error) : `the simulation failed: ${stack}`;
    const context = this.contextOf(request, undefined, () => endOf(reply));
    return this.send(this.options.form.failure(statusCode, message, context), context, reply);
  }

  private send(answer: Answer, context: RequestContext<F>, reply: FastifyReply): FastifyReply {
    const { form } = this.options;
    void reply
      .code(answer.status)
      .headers({ ...this.dateHeader(), ...form.headers?.(context), ...this.typeHeader(answer), ...answer.headers });
    if (answer.body instanceof Readable) {
      void reply.send(answer.body);
      // A server announces a stream at once, even if nothing happens for long.
      reply.raw.flushHeaders();
      return reply;
    }
    const content = contentOf(answer);
    return reply.send(content.length === 0 ? undefined : content);
  }

  private sendHalf(answer: Answer, reply: FastifyReply): void {
    const content = contentOf(answer);
    reply.raw.writeHead(answer.status, { ...this.typeHeader(answer), 'Content-Length': String(content.length + 1) });
    reply.raw.write(content.subarray(0, content.length >> 1), () => reply.raw.destroy());
  }

  private dateHeader(): Record<string, string> {
    const { clock, settings } = this.options.state;
    return { Date: new Date(clock.now() + (settings.clockAheadMs ?? 0)).toUTCString() };
  }

  private typeHeader({ type, body }: Answer): Record<string, string> {
    if (type !== undefined) return { 'Content-Type': type };
    return body === undefined ? {} : { 'Content-Type': this.options.form.jsonType };
  }

  private contextOf(
    request: FastifyRequest,
    operation: string | undefined,
    ended: () => AbortSignal,
  ): RequestContext<F> {
    const url = new URL(request.url, `${request.protocol}://${request.host}`);
    return {
      operation,
      url,
      method: request.method,
      query: url.searchParams,
      params: request.params as Readonly<Record<string, string>>,
      headers: request.headers,
      body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
      stream: request.raw as AsyncIterable<Uint8Array>,
      faults: [],
      signal: this.closed.signal,
      ended,
    };
  }

  private latencyOf({ faults }: RequestContext<F>): number {
    const added = faults.map((fault) => (isLatency(fault) ? fault.ms : 0));
    return added.reduce((sum, ms) => sum + ms, this.options.state.settings.latencyMs);
  }

  private async pause(ms: number): Promise<void> {
    if (ms > 0) await sleep(this.options.state.clock, ms, this.closed.signal);
  }
}

/** Returns a signal that aborts when the connection is done with a call. Few handlers wait, so few need one. */
function endOf(reply: FastifyReply): AbortSignal {
  const ended = new AbortController();
  const end = (): void => ended.abort(new Error('the call has ended'));
  if (reply.raw.closed || reply.raw.destroyed) end();
  else reply.raw.once('close', end);
  return ended.signal;
}

/** Returns a page that repeats the request. */
function echoOf({ method, url, headers }: Pick<RequestContext, 'method' | 'url' | 'headers'>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  return `<html><body><h1>Bad gateway</h1><pre>${method} ${url.pathname}\n${lines.join('\n')}</pre></body></html>\n`;
}

function contentOf({ body }: Answer): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  return Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function patternOf(path: string, ignoresCase: boolean): RegExp {
  const pattern = path.replaceAll('.', String.raw`\.`).replaceAll(/:\w+/g, '[^/]+');
  return new RegExp(`^${pattern}/?$`, ignoresCase ? 'i' : '');
}

/** Yields the beginning of a JSON text without end. */
function* endless(): Generator<Buffer> {
  yield Buffer.from('{"text": "');
  for (const piece = Buffer.alloc(2 ** 16, 'x'); ;) yield piece;
}

type FailingFault = Exclude<CallFault, { readonly kind: 'latency' | 'content-type' }>;

function isFailing<F extends VendorFault>(fault: F): fault is F & FailingFault {
  return ['status', 'proxy', 'redirect', 'endless', 'cut', 'hang'].includes(fault.kind);
}

function isStatus<F extends VendorFault>(fault: F): fault is F & StatusFaultOf<F> & StatusFault {
  return fault.kind === 'status';
}

function isProxy(fault: VendorFault): fault is Extract<CallFault, { readonly kind: 'proxy' }> {
  return fault.kind === 'proxy';
}

function isRedirect(fault: VendorFault): fault is Extract<CallFault, { readonly kind: 'redirect' }> {
  return fault.kind === 'redirect';
}

function isContentType<F extends VendorFault>(
  fault: F,
): fault is F & Extract<CallFault, { readonly kind: 'content-type' }> {
  return fault.kind === 'content-type';
}

function isCut(fault: VendorFault): fault is Extract<CallFault, { readonly kind: 'cut' }> {
  return fault.kind === 'cut';
}

function isLatency(fault: VendorFault): fault is Extract<CallFault, { readonly kind: 'latency' }> {
  return fault.kind === 'latency';
}

function whenOf(fault: FailingFault): 'before' | 'during' | 'after' {
  return 'when' in fault ? (fault.when ?? 'before') : 'before';
}
