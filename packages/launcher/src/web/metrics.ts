/** `/metrics`: the launcher's metrics in the Prometheus text format. */

import type { WebRoutes } from './context.js';

export const metricsRoutes: WebRoutes = (app, { metrics }) => {
  if (metrics === undefined) return;
  app.get('/metrics', async (_request, reply) => {
    const exposition = await metrics.exposition();
    if (exposition === undefined) return reply.code(404).send({ statusCode: 404, message: 'no metrics are kept' });
    return reply.type(exposition.contentType).header('Cache-Control', 'no-store').send(exposition.text);
  });
};
