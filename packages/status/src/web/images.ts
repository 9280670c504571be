/** `/status/v1/images` and `/status/v1/image/NAME` of a program that serves no status page. */

import type { Clock } from '@nodepool/core';
import { sendError, type HttpApp, type Route } from '@nodepool/daemon/web';
import { imageNames, imageReport, type ImageSources } from '../documents/image-reports.js';

/** Adds the routes. Times in the documents are in unix seconds. */
export function imageRoutes(app: HttpApp, clock: Clock, sources: ImageSources): void {
  app.get('/status/v1/images', (_request, reply) => {
    const images = [...imageNames(sources)].sort().map((name) => imageReport(sources, name));
    return reply.send({ time: clock.now() / 1000, images });
  });
  app.get<Route>('/status/v1/image/*', (request, reply) => {
    const name = request.params['*'] ?? '';
    if (imageNames(sources).has(name)) {
      return reply.send({ time: clock.now() / 1000, image: imageReport(sources, name) });
    }
    return sendError(request, reply, 404, `there is no image ${JSON.stringify(name)}`);
  });
}
