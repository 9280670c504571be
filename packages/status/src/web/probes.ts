/** `/ready` and `/health`, for load balancers, orchestrators and monitoring. The answers are never cached. */

import { addReadyProbe, type HttpApp } from '@nodepool/daemon/web';
import type { Store } from '@nodepool/store';

export interface ProbeSources {
  readonly store: Pick<Store, 'complete' | 'zooKeeper'>;
  readonly isReady: () => boolean;
  /** Returns what a program that is not ready waits for, for people. */
  readonly missing: () => string;
}

export function probeRoutes(app: HttpApp, { store, isReady, missing }: ProbeSources): void {
  addReadyProbe(app, () => (isReady() ? undefined : `not ready: ${missing()}`));

  /**
   * Answers 200 as long as the process responds, since a restart would not repair ZooKeeper. `status` is `degraded`
   * while the program cannot see all records.
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
}
