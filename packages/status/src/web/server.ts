/** The launcher's web endpoint: read-only, for operators and monitoring. */

import { addMetricsPage, createHttpServer, type HttpServer } from '@nodepool/daemon/web';
import type { WebContext, WebRoutes } from './context.js';
import { explainRoutes } from './explain.js';
import { journalRoutes } from './journal.js';
import { listRoutes } from './lists.js';
import { probeRoutes } from './probes.js';
import { statusRoutes } from './status.js';

/** The groups of endpoints that only a launcher has. */
const ROUTES: readonly WebRoutes[] = [listRoutes, explainRoutes, statusRoutes, journalRoutes];

export type WebServer = HttpServer;

/** Creates the web endpoint; it listens only after `start`. */
export function createWebServer(context: WebContext): WebServer {
  const { store, isReady, metrics } = context;
  const log = context.log.named('nodepool.web');
  const missing = (): string =>
    store.complete ? 'providers are starting' : 'the launcher does not see all records of ZooKeeper';
  return createHttpServer({
    log,
    routes: (app) => {
      probeRoutes(app, { store, isReady, missing });
      if (metrics !== undefined) addMetricsPage(app, metrics);
      for (const routes of ROUTES) routes(app, { ...context, log });
    },
  });
}
