/** `/ready` and `/health`: for load balancers, orchestrators and monitoring. Never cached. */

import type { WebRoutes } from './context.js';

export const probeRoutes: WebRoutes = (app, { store, isReady }) => {
  /** 200 `OK` once every provider has started, before that 503. */
  app.get('/ready', (_request, reply) => {
    void reply.type('text/plain; charset=UTF-8').header('Cache-Control', 'no-store');
    return isReady() ? reply.send('OK') : reply.code(503).send('not ready: providers are starting');
  });

  /**
   * 200 as long as the process answers: restarting it would not bring ZooKeeper back. `status` is `degraded` while
   * the launcher cannot see all records.
   */
  app.get('/health', (_request, reply) => {
    const connected = store.zooKeeper.state === 'connected';
    return reply.header('Cache-Control', 'no-store').send({
      status: connected && store.complete ? 'ok' : 'degraded',
      ready: isReady(),
      zookeeper: store.zooKeeper.state,
      caches: store.complete ? 'complete' : 'incomplete',
    });
  });
};
