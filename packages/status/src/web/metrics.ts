/** `/metrics`: the launcher's metrics in the Prometheus text format. */

import { addMetricsPage } from '@nodepool/daemon/web';
import type { WebRoutes } from './context.js';

export const metricsRoutes: WebRoutes = (app, { metrics }) => {
  if (metrics !== undefined) addMetricsPage(app, metrics);
};
