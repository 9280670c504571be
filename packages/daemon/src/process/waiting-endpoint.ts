/** The web endpoint of a daemon that waits for its first connection to ZooKeeper. */

import type { Clock, Logger } from '@nodepool/core';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import { answerFormat } from '../web/negotiate.js';
import { addMetricsPage, createHttpServer, type HttpServer } from '../web/http-server.js';
import { addLiveProbe, addReadyProbe } from '../web/probes.js';

export interface ZooKeeperWait {
  /** The servers of the configuration in force. */
  readonly servers: readonly string[];
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Reason of the last failed attempt; undefined before the first one failed. */
  readonly reason: string | undefined;
}

export interface WaitingEndpointOptions {
  /** e.g. `nodepool-launcher`. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<MetricsRegistry, 'exposition'>;
  readonly wait: () => ZooKeeperWait;
}

/** Browsers load the page again after this many seconds. */
const REFRESH_S = 5;

/** Creates the endpoint: metrics, probes, and the reason of the wait on all other pages. */
export function createWaitingEndpoint(options: WaitingEndpointOptions): HttpServer {
  const { name, clock, metrics, wait } = options;
  return createHttpServer({
    log: options.log.named('nodepool.web'),
    routes: (app) => {
      addMetricsPage(app, metrics);
      app.addHook('onRequest', (_request, reply, done) => {
        void reply.headers({ 'Cache-Control': 'no-store', 'Access-Control-Allow-Origin': '*' });
        done();
      });
      addReadyProbe(app, () => `not ready: ${describeWait(wait(), clock)}`);
      addLiveProbe(app);
      app.get('/health', (_request, reply) =>
        reply.send({
          ...{ status: 'degraded', ready: false, zookeeper: 'connecting', caches: 'incomplete' },
          reason: describeWait(wait(), clock),
        }),
      );
      app.get('/*', (request, reply) => {
        const message = describeWait(wait(), clock);
        void reply.code(503).header('Retry-After', String(REFRESH_S));
        if (answerFormat(request.headers.accept) === 'json') return reply.send({ statusCode: 503, message });
        const text = `${name} is starting: ${message}\n\nThis page shows the status once ZooKeeper is connected.\n`;
        return reply.type('text/plain; charset=UTF-8').header('Refresh', String(REFRESH_S)).send(text);
      });
    },
  });
}

function describeWait({ servers, since, reason }: ZooKeeperWait, clock: Clock): string {
  const seconds = Math.round((clock.now() - since) / 1000);
  const started = new Date(since).toISOString();
  const why = reason ?? 'no server has answered yet';
  return `not connected to ZooKeeper: ${servers.join(', ')}, since ${started} (${seconds} s): ${why}`;
}
