/** Metrics of the cost of nodes. Costs have no statsd keys, because the Python Nodepool has none. */

import { counter, gauge, type Metrics } from '@nodepool/core';
import { ReportedGauge } from '@nodepool/daemon';
import type { CostMeter } from './cost-meter.js';

export const COST_RATE = gauge(
  'nodepool_node_cost_per_hour',
  ['provider', 'label', 'use', 'currency'],
  'Present cost of nodes with a price; use: in-use, idle, overhead (each launcher, all nodes of its providers).',
);

export const NODE_COST = counter(
  'nodepool_node_cost_total',
  ['provider', 'label', 'use', 'currency'],
  'Cost since the start of the launcher (each launcher, all nodes of its providers).',
);

export const TENANT_COST = counter(
  'nodepool_tenant_cost_total',
  ['tenant', 'project', 'currency'],
  'Cost of used nodes since the start of the launcher (each launcher, all nodes of its providers).',
);

/** Starts to report. Returns a function that ends the reports. */
export function reportCosts(meter: CostMeter, metrics: Metrics): () => void {
  const read = meter.reader();
  const rates = new ReportedGauge(metrics, COST_RATE);
  return metrics.onCollect(() => {
    const sums = new Map<string, number>();
    for (const { provider, label, tenant, project, use, currency, perHour, amount } of read()) {
      const labels = { provider, label, use, currency };
      const key = JSON.stringify(labels);
      const sum = (sums.get(key) ?? 0) + perHour;
      sums.set(key, sum);
      rates.set(labels, sum);
      if (amount <= 0) continue;
      metrics.count(NODE_COST, labels, amount);
      if (use !== 'idle') metrics.count(TENANT_COST, { tenant, project, currency }, amount);
    }
    rates.end();
  });
}
