/** The HTTP server of the API: TLS, authentication, limits, errors. */

import { Server as TlsServer } from 'node:tls';
import type { Clock, Logger, Metrics } from '@nodepool/core';
import { reasonOf } from '@nodepool/core';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Principal } from '../auth/principal.js';
import { HTTP_REQUESTS } from '../metrics.js';
import type { RequestLimits } from '../settings/settings.js';
import { problemDocument, ProblemError, type ProblemCode } from './problems.js';
import { RateLimit } from './rate-limit.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The `operationId` of the OpenAPI document. */
    operation?: string;
  }
}

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface GatewayServerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly limits: () => RequestLimits;
  /** Undefined for plain HTTP, on an address of this host only. */
  readonly certificate: Certificate | undefined;
  /** Resolves with the caller. Rejects with a problem. */
  readonly authenticate: (authorization: string | undefined) => Promise<Principal>;
  readonly isReady: () => boolean;
  /** Adds the operations; `principalOf` returns the authenticated caller of a request. */
  readonly routes: (app: FastifyInstance, principalOf: (request: FastifyRequest) => Principal) => void;
}

/** Time for a client to send its request, and for a silent connection, in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 60_000;
/** Interval in which the server looks for requests that are over their time, in milliseconds. */
const CHECK_MS = 2000;
/** Longest part of a path, e.g. an id. */
const MAX_PARAMETER_CHARACTERS = 100;
/** Operations without a token. */
const OPEN: ReadonlySet<string | undefined> = new Set(['getDescription', 'isLive', 'isReady']);

/** The address cannot be used. */
class GatewayAddressError extends Error {
  readonly code = 'web-endpoint';
  constructor(address: string, port: number, cause: unknown) {
    super(`the gateway cannot listen on ${address} port ${port}: ${reasonOf(cause)}; change "listen" in its settings`, {
      cause,
    });
    this.name = 'GatewayAddressError';
  }
}

export class GatewayServer {
  private readonly app: FastifyInstance;
  private readonly principals = new WeakMap<FastifyRequest, Principal>();
  private readonly rates: RateLimit;
  /** Failed authentications by address, so that tokens cannot be guessed quickly. */
  private readonly failures: RateLimit;

  constructor(private readonly options: GatewayServerOptions) {
    const { clock, limits } = options;
    this.rates = new RateLimit(clock, limits);
    this.failures = new RateLimit(clock, () => ({ perSecond: 1, burst: 20 }));
    this.app = this.createApp();
  }

  /** Starts to listen. Rejects with an error that names the address if that fails. */
  async start({
    address,
    port,
  }: {
    readonly address: string;
    readonly port: number;
  }): Promise<{ readonly port: number }> {
    try {
      await this.app.listen({ host: address, port });
    } catch (error) {
      throw new GatewayAddressError(address, port, error);
    }
    this.applyLimits();
    const bound = this.app.server.address();
    return { port: typeof bound === 'object' && bound !== null ? bound.port : port };
  }

  /** Applies changed limits of connections, and a renewed certificate to new connections. */
  update(certificate: Certificate | undefined): void {
    this.applyLimits();
    const { server } = this.app;
    if (certificate !== undefined && server instanceof TlsServer) {
      server.setSecureContext({ ...certificate, minVersion: 'TLSv1.2' });
    }
  }

  /** Ends the requests in progress and resolves once the port is free. */
  async stop(): Promise<void> {
    await this.app.close();
  }

  private applyLimits(): void {
    this.app.server.maxConnections = this.options.limits().connections;
  }

  private createApp(): FastifyInstance {
    const { certificate, limits, isReady, routes } = this.options;
    const common = {
      logger: false,
      bodyLimit: limits().bodyBytes,
      connectionTimeout: IDLE_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      forceCloseConnections: true,
      routerOptions: { maxParamLength: MAX_PARAMETER_CHARACTERS },
      schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
      onProtoPoisoning: 'error',
      onConstructorPoisoning: 'error',
      exposeHeadRoutes: false,
      // Faults that the HTTP library finds before the routes, such as a path that cannot be decoded.
      frameworkErrors: (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
        void this.fail(error, request, reply),
    } as const;
    // Node.js applies the shorter of both limits to the headers only, so they must be equal.
    const timing = { connectionsCheckingInterval: CHECK_MS, headersTimeout: REQUEST_TIMEOUT_MS };
    const app =
      certificate === undefined
        ? fastify({ ...common, http: timing })
        : (fastify({
            ...common,
            https: { ...certificate, ...timing, minVersion: 'TLSv1.2' },
          }) as unknown as FastifyInstance);
    app.removeContentTypeParser('text/plain');
    app.addHook('onRequest', (request, reply) => this.admit(request, reply));
    app.addHook('onResponse', (request, reply, done) => {
      const { operation } = request.routeOptions.config;
      if (operation !== undefined && operation !== 'followLease') {
        this.options.metrics.observe(HTTP_REQUESTS, { operation, status: String(reply.statusCode) }, reply.elapsedTime);
      }
      done();
    });
    app.setErrorHandler((error, request, reply) => this.fail(error, request, reply));
    app.setNotFoundHandler((request, reply) => this.fail(this.unknownRoute(request), request, reply));
    app.get('/live', { config: { operation: 'isLive' } }, (_request, reply) =>
      reply.type('text/plain; charset=utf-8').send('OK'),
    );
    app.get('/ready', { config: { operation: 'isReady' } }, (_request, reply) => {
      void reply.type('text/plain; charset=utf-8');
      return isReady() ? reply.send('OK') : reply.code(503).send('not ready: not all records of ZooKeeper are known');
    });
    routes(app, (request) => this.principalOf(request));
    return app;
  }

  private principalOf(request: FastifyRequest): Principal {
    const principal = this.principals.get(request);
    if (principal === undefined) throw new Error('a request was not authenticated');
    return principal;
  }

  /** Authenticates the caller and applies the limit of requests, before the body is read. */
  private async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    void reply.headers({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
    if (OPEN.has(request.routeOptions.config.operation)) return;
    if (!this.options.isReady())
      throw new ProblemError('unavailable', 'the gateway does not see all records of ZooKeeper', { retryAfter: 2 });
    const principal = await this.authenticated(request);
    const waitS = this.rates.take(principal.subject);
    if (waitS > 0) throw new ProblemError('rate-limit', 'the token sends too many requests', { retryAfter: waitS });
    this.principals.set(request, principal);
  }

  private async authenticated(request: FastifyRequest): Promise<Principal> {
    try {
      return await this.options.authenticate(request.headers.authorization);
    } catch (error) {
      const isRefused = error instanceof ProblemError && error.code === 'unauthorized';
      const waitS = isRefused ? this.failures.take(request.ip) : 0;
      if (waitS === 0) throw error;
      throw new ProblemError('rate-limit', 'too many requests without a valid token', { retryAfter: waitS });
    }
  }

  private unknownRoute({ url }: FastifyRequest): ProblemError {
    const isKnown = /^\/v1\/(leases(\/[0-9a-f]{32}(\/(events|renew|hold))?)?|labels|openapi\.json)(\?|$)/.test(url);
    return isKnown
      ? new ProblemError('method-not-allowed', 'the resource does not have this method; see /v1/openapi.json')
      : new ProblemError('not-found', 'there is no such path; see /v1/openapi.json');
  }

  private fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const problem = problemOf(error);
    if (problem.code === 'internal') {
      const { operation } = request.routeOptions.config;
      this.options.log.error('A request failed', error, { operation, method: request.method });
    }
    if (problem.code === 'unauthorized') void reply.header('WWW-Authenticate', 'Bearer');
    const { retryAfter } = problem.extra;
    if (retryAfter !== undefined) void reply.header('Retry-After', String(retryAfter));
    return reply
      .code(problem.statusCode)
      .type('application/problem+json')
      .send(JSON.stringify(problemDocument(problem)));
  }
}

/** Codes of problems that the HTTP library finds, by status. */
const BY_STATUS: Readonly<Record<number, ProblemCode>> = {
  400: 'bad-request',
  404: 'not-found',
  405: 'method-not-allowed',
  408: 'timeout',
  413: 'too-large',
  414: 'bad-request',
  415: 'unsupported-media-type',
};

function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (isUnavailable(error)) {
    const detail =
      'ZooKeeper did not answer; the change may have been applied. Repeat it with the same idempotency key';
    return new ProblemError('unavailable', detail, { retryAfter: 2, cause: error });
  }
  const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : 500;
  const code = typeof status === 'number' ? BY_STATUS[status] : undefined;
  if (code === undefined)
    return new ProblemError('internal', 'an error of the gateway; its log has the details', { cause: error });
  return new ProblemError(code, reasonOf(error), { cause: error });
}

function isUnavailable(error: unknown): boolean {
  if (error instanceof Error && 'code' in error && error.code === 'contended-lease') return true;
  const codes = [
    'connection-lost',
    'outcome-unknown',
    'session-lost',
    'timeout',
    'overloaded',
    'throttled',
    'closed',
    'aborted',
    'session-moved',
  ] as const;
  return codes.some((code) => isZooKeeperError(error, code));
}

function noSchemas(): never {
  throw new Error('the routes of the gateway have no schemas of their own');
}
