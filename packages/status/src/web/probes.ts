/** `/ready` and `/health`, for load balancers, orchestrators and monitoring. The answers are never cached. */

import type { WebRoutes } from './context.js';

export const probeRoutes: WebRoutes = (app, { store, isReady }) => {
  /**
   * Answers 200 `OK` while ZooKeeper is connected and every provider serves requests or is known to fail; otherwise
   * 503.
   */
  app.get('/ready', (_request, reply) => {
    void reply.type('text/plain; charset=UTF-8').header('Cache-Control', 'no-store');
    if (isReady()) return reply.send('OK');
    const missing = store.complete ? 'providers are starting' : 'the launcher does not see all records of ZooKeeper';
    return reply.code(503).send(`not ready: ${missing}`);
  });

  /**
   * Answers 200 as long as the process responds, since a restart would not repair ZooKeeper. `status` is `degraded`
   * while the launcher cannot see all records.
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
