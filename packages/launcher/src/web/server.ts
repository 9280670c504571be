/** The launcher's web endpoint: read-only, for operators and monitoring. */

import { reasonOf } from '@nodepool/core';
import fastify, { type FastifyInstance } from 'fastify';
import type { WebContext, WebRoutes } from './context.js';
import { errorHandler, sendError } from './errors.js';
import { explainRoutes } from './explain.js';
import { listRoutes } from './lists.js';
import { metricsRoutes } from './metrics.js';
import { probeRoutes } from './probes.js';
import { statusRoutes } from './status/index.js';

/** All groups of endpoints. */
const ROUTES: readonly WebRoutes[] = [probeRoutes, listRoutes, metricsRoutes, explainRoutes, statusRoutes];

const REQUEST_TIMEOUT_MS = 10_000;
const MAX_BODY_BYTES = 1024;

export interface WebServer {
  /** Starts to listen; with port 0 on any free port. Rejects with an error that names the address if that fails. */
  start(port: number, address: string): Promise<{ readonly port: number }>;
  /** Ends requests in progress and resolves once the port is free. Idempotent. */
  stop(): Promise<void>;
}

/** Creates the web endpoint; it listens only after `start`. */
export function createWebServer(context: WebContext): WebServer {
  const app = makeApp(context);
  let stopped: Promise<void> | undefined;
  return {
    start: (port, address) => listen(app, port, address),
    stop: () => (stopped ??= Promise.resolve(app.close())),
  };
}

function makeApp(context: WebContext): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    connectionTimeout: REQUEST_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
    routerOptions: { ignoreTrailingSlash: true },
  });
  const log = context.log.named('nodepool.web');
  app.setErrorHandler(errorHandler(log));
  app.setNotFoundHandler((request, reply) =>
    request.method === 'GET' || request.method === 'HEAD'
      ? sendError(request, reply, 404, 'there is no such page; see the manual for those that there are')
      : sendError(request, reply, 405, 'this endpoint is read only: use GET'),
  );
  for (const routes of ROUTES) routes(app, { ...context, log });
  return app;
}

/** The web endpoint cannot listen on its address. */
class WebEndpointError extends Error {
  readonly code = 'web-endpoint';
  constructor(host: string, port: number, cause: unknown) {
    super(
      `the web endpoint cannot listen on ${host} port ${port}: ${reasonOf(cause)}; ` +
        'choose others with `webapp: {listen_address, port}`, or start with --no-webapp',
      { cause },
    );
    this.name = 'WebEndpointError';
  }
}

async function listen(app: FastifyInstance, port: number, host: string): Promise<{ readonly port: number }> {
  try {
    await app.listen({ port, host });
  } catch (error) {
    throw new WebEndpointError(host, port, error);
  }
  const address = app.server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : port };
}
