/** `/status/v1/…`: the documents of the status pages as JSON, read-only. */

import type { Clock } from '@nodepool/core';
import { sendError, type HttpApp, type HttpReply, type HttpRequest, type Route } from '@nodepool/daemon/web';
import { AnswerCache } from './answer-cache.js';
import type { Observed } from '../documents/sources.js';
import { documentOf, readParameters, VIEWS } from '../documents/index.js';

const LIFE_MS = 1000;
const MAX_ANSWERS = 32;

/** Adds the routes. Answers are cached for a second, so that many clients cost as little as one. */
export function documentRoutes(app: HttpApp, clock: Clock, observe: () => Observed): void {
  const cache = new AnswerCache(clock, LIFE_MS, MAX_ANSWERS);
  app.addHook('onClose', (_app, done) => {
    cache.clear();
    done();
  });
  for (const [view, { hasSubject, list }] of VIEWS) {
    const path = hasSubject ? `/status/v1/${view}/*` : `/status/v1/${view}`;
    app.get<Route>(path, (request, reply) => {
      const parameters = readParameters(request.params['*'] ?? '', request.query, list);
      const { body } = cache.get(JSON.stringify([view, parameters]), () => {
        const document = documentOf(observe(), view, parameters);
        return document === undefined ? '' : JSON.stringify({ time: clock.now() / 1000, ...document });
      });
      if (body === '') return sendMissing(request, reply, view, parameters.id);
      void reply.headers({ 'Access-Control-Allow-Origin': '*', 'Cache-Control': 'no-store' });
      return reply.type('application/json').send(body);
    });
  }
}

function sendMissing(request: HttpRequest, reply: HttpReply, view: string, id: string): HttpReply {
  return sendError(request, reply, 404, `there is no ${view} ${JSON.stringify(id)}, and this launcher remembers none`);
}
