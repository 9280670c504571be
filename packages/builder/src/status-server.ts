/** The builder's web endpoint: read-only, for operators and monitoring. */

import type { NodepoolConfig } from '@nodepool/config';
import type { Clock, Logger } from '@nodepool/core';
import type { EventLoopMonitor, MetricsRegistry } from '@nodepool/daemon';
import { addMetricsPage, createHttpServer, type HttpApp, type HttpServer } from '@nodepool/daemon/web';
import { imageRoutes, probeRoutes } from '@nodepool/status/routes';
import type { Store } from '@nodepool/store';
import type { BuilderActivity } from './activity.js';

export interface StatusServerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<MetricsRegistry, 'exposition'>;
  readonly hostname: string;
  readonly version: string;
  readonly builderId: string;
  readonly config: () => NodepoolConfig;
  readonly activity: () => BuilderActivity;
  readonly eventLoop: Pick<EventLoopMonitor, 'read'>;
}

/** Creates the web endpoint; it listens only after `start`. */
export function createStatusServer(options: StatusServerOptions): HttpServer {
  return createHttpServer({
    log: options.log.named('nodepool.web'),
    routes: (app) => addRoutes(app, options),
  });
}

function addRoutes(app: HttpApp, options: StatusServerOptions): void {
  const { store, clock, metrics, config } = options;
  addMetricsPage(app, metrics);
  app.addHook('onRequest', (_request, reply, done) => {
    void reply.headers({ 'Cache-Control': 'no-store', 'Access-Control-Allow-Origin': '*' });
    done();
  });
  probeRoutes(app, {
    store,
    isReady: () => isReady(store),
    missing: () => 'the builder does not see all records of ZooKeeper',
  });
  imageRoutes(app, clock, { store, config });
  app.get('/', (_request, reply) => reply.type('text/plain; charset=UTF-8').send(overviewText(options)));
  app.get('/status/v1/overview', (_request, reply) => reply.send({ time: clock.now() / 1000, ...overview(options) }));
}

/** The JSON of `/status/v1/overview`; times are in unix seconds, ages in seconds. */
function overview({ store, clock, hostname, version, builderId, activity, eventLoop }: StatusServerOptions): object {
  const { builds, uploads, uploadsWaiting, cleanups, providers } = activity();
  return {
    builder: {
      ...{ hostname, version, id: builderId, zookeeper: store.zooKeeper.state, ready: isReady(store) },
      started: Math.round(clock.now() / 1000 - process.uptime()),
      eventLoopP99: eventLoop.read().p99,
      heapBytes: process.memoryUsage().heapUsed,
    },
    builds: builds.map(({ image, build = null, ageMs }) => ({ image, build, age: ageMs / 1000 })),
    uploads: uploads.map(({ image, build, provider, upload = null, ageMs, sentBytes, totalBytes }) => ({
      ...{ image, build, provider, upload, age: ageMs / 1000, sentBytes, totalBytes },
    })),
    uploadsWaiting,
    cleanups: cleanups.map(({ what, ageMs }) => ({ what, age: ageMs / 1000 })),
    providers,
  };
}

function overviewText({ hostname, version, activity, store }: StatusServerOptions): string {
  const { builds, uploads, uploadsWaiting, providers } = activity();
  const lines = [
    `nodepool-builder ${version} on ${hostname}`,
    `ZooKeeper: ${store.zooKeeper.state}`,
    `builds: ${builds.length}`,
    ...builds.map(({ image, build, ageMs }) => `  ${image} ${build ?? 'starting'}, for ${seconds(ageMs)}`),
    `uploads: ${uploads.length}, waiting: ${uploadsWaiting}`,
    ...uploads.map(
      ({ image, build, provider, ageMs, sentBytes, totalBytes }) =>
        `  ${image} ${build} to ${provider}, ${sentBytes} of ${totalBytes} bytes, for ${seconds(ageMs)}`,
    ),
    ...providers.filter(({ ready }) => !ready).map(({ provider }) => `provider ${provider} is not ready`),
    'JSON: /status/v1/overview, /status/v1/images, /status/v1/image/NAME; also /metrics, /health, /ready',
  ];
  return `${lines.join('\n')}\n`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

function isReady(store: Store): boolean {
  return store.complete && store.zooKeeper.state === 'connected';
}
