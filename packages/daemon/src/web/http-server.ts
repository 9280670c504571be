/** An HTTP server that only answers GET and HEAD, for operators and monitoring. */

import { reasonOf, type Logger } from '@nodepool/core';
import { fastify, type FastifyInstance } from 'fastify';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import { errorHandler, sendError } from './errors.js';
import type { HttpApp } from './http-app.js';

const REQUEST_TIMEOUT_MS = 10_000;
const MAX_BODY_BYTES = 1024;

export interface HttpServerOptions {
  readonly log: Logger;
  readonly routes: (app: HttpApp) => void;
}

export interface EndpointAddress {
  /** 0 for any free port. */
  readonly port: number;
  readonly address: string;
  /** The remedy of an address that is not available, e.g. `choose another one with --status-port`. */
  readonly otherAddress: string;
}

export interface HttpServer {
  /** Starts to listen. Rejects with an error that names the address if that fails. */
  start(endpoint: EndpointAddress): Promise<{ readonly port: number }>;
  /** Ends requests in progress and resolves once the port is free. Idempotent. */
  stop(): Promise<void>;
}

/** Creates the server; it listens only after `start`. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const app = makeApp(options);
  let stopped: Promise<void> | undefined;
  return {
    start: (endpoint) => listen(app, endpoint),
    stop: () => (stopped ??= Promise.resolve(app.close())),
  };
}

/** Adds `/metrics`: the metrics in the Prometheus text format. */
export function addMetricsPage(app: HttpApp, metrics: Pick<MetricsRegistry, 'exposition'>): void {
  app.get('/metrics', async (_request, reply) => {
    const exposition = await metrics.exposition();
    if (exposition === undefined) return reply.code(404).send({ statusCode: 404, message: 'metrics are disabled' });
    return reply.type(exposition.contentType).header('Cache-Control', 'no-store').send(exposition.text);
  });
}

function makeApp({ log, routes }: HttpServerOptions): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    connectionTimeout: REQUEST_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
    routerOptions: { ignoreTrailingSlash: true },
    // The routes have no schemas; without these functions fastify loads two compilers of schemas.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
  });
  app.setErrorHandler(errorHandler(log));
  app.setNotFoundHandler((request, reply) =>
    request.method === 'GET' || request.method === 'HEAD'
      ? sendError(request, reply, 404, 'there is no such page; the manual lists the pages')
      : sendError(request, reply, 405, 'this endpoint is read only: use GET'),
  );
  routes(app);
  return app;
}

function noSchemas(): never {
  throw new Error('the routes of the web endpoint have no schemas');
}

/** The web endpoint cannot listen on its address. */
class WebEndpointError extends Error {
  readonly code = 'web-endpoint';
  constructor({ address, port, otherAddress }: EndpointAddress, cause: unknown) {
    super(`the web endpoint cannot listen on ${address} port ${port}: ${reasonOf(cause)}; ${otherAddress}`, { cause });
    this.name = 'WebEndpointError';
  }
}

async function listen(app: FastifyInstance, endpoint: EndpointAddress): Promise<{ readonly port: number }> {
  const { port, address } = endpoint;
  try {
    await app.listen({ port, host: address });
  } catch (error) {
    throw new WebEndpointError(endpoint, error);
  }
  const inUse = app.server.address();
  return { port: typeof inUse === 'object' && inUse !== null ? inUse.port : port };
}
