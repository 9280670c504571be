/** The launcher's web endpoint: read-only, for operators and monitoring. */

import { createHttpServer, type HttpServer } from '@nodepool/daemon/web';
import type { WebContext, WebRoutes } from './context.js';
import { explainRoutes } from './explain.js';
import { listRoutes } from './lists.js';
import { metricsRoutes } from './metrics.js';
import { probeRoutes } from './probes.js';
import { statusRoutes } from './status.js';

/** All groups of endpoints. */
const ROUTES: readonly WebRoutes[] = [probeRoutes, listRoutes, metricsRoutes, explainRoutes, statusRoutes];

export type WebServer = HttpServer;

/** Creates the web endpoint; it listens only after `start`. */
export function createWebServer(context: WebContext): WebServer {
  const log = context.log.named('nodepool.web');
  return createHttpServer({
    log,
    routes: (app) => {
      for (const routes of ROUTES) routes(app, { ...context, log });
    },
    otherAddress: context.otherAddress,
  });
}
