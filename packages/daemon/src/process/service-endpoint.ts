import type { Logger } from '@nodepool/core';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import { addMetricsPage, createHttpServer, type HttpServer } from '../web/http-server.js';
import { addLiveProbe, addReadyProbe } from '../web/probes.js';

export interface ServiceEndpointOptions {
  readonly log: Logger;
  readonly metrics: Pick<MetricsRegistry, 'exposition'>;
  readonly isReady: () => boolean;
}

/** Creates the web endpoint of a service: metrics and probes. */
export function createServiceEndpoint({ log, metrics, isReady }: ServiceEndpointOptions): HttpServer {
  return createHttpServer({
    log: log.named('nodepool.web'),
    routes: (app) => {
      addMetricsPage(app, metrics);
      addLiveProbe(app);
      addReadyProbe(app, () => (isReady() ? undefined : 'not ready'));
    },
  });
}
