/** The probes of orchestrators and load balancers, as text. The answers are never cached. */

import type { HttpApp } from './http-app.js';

/**
 * Adds `/live`, which answers 200 as long as the process responds: a restart of the process does not bring ZooKeeper
 * back.
 */
export function addLiveProbe(app: HttpApp): void {
  app.get('/live', (_request, reply) => reply.type('text/plain; charset=UTF-8').send('OK'));
}

/** Adds `/ready`, which answers 200 if `notReady` returns undefined, otherwise 503 with the returned text. */
export function addReadyProbe(app: HttpApp, notReady: () => string | undefined): void {
  app.get('/ready', (_request, reply) => {
    void reply.type('text/plain; charset=UTF-8').header('Cache-Control', 'no-store');
    const answer = notReady();
    return answer === undefined ? reply.send('OK') : reply.code(503).send(answer);
  });
}
