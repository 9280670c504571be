/** Reports the limits of the configuration as metrics. */

import type { Metrics, PoolConfig } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { PROVIDER_LIMITS, TENANT_LIMITS } from './launcher-metrics.js';
import { ReportedGauge } from '@nodepool/daemon';

export class LimitMetrics {
  private readonly providers: ReportedGauge<'provider' | 'limit'>;
  private readonly tenants: ReportedGauge<'tenant' | 'limit'>;

  constructor(metrics: Metrics) {
    this.providers = new ReportedGauge(metrics, PROVIDER_LIMITS);
    this.tenants = new ReportedGauge(metrics, TENANT_LIMITS);
  }

  apply({ providers, tenantLimits }: Pick<NodepoolConfig, 'providers' | 'tenantLimits'>): void {
    for (const [provider, { pools }] of providers) {
      for (const [limit, sum] of providerLimits([...pools.values()])) this.providers.set({ provider, limit }, sum);
    }
    this.providers.end();
    for (const [tenant, limits] of tenantLimits) {
      for (const [limit, value] of Object.entries(limits)) {
        if (Number.isFinite(value)) this.tenants.set({ tenant, limit }, value);
      }
    }
    this.tenants.end();
  }
}

/** Returns the sums of the pools' limits, by metric name, without resources that are unlimited in one of them. */
function providerLimits(pools: readonly PoolConfig[]): Map<string, number> {
  const names = new Set(pools.flatMap(({ limits }) => Object.keys(limits)));
  const sums = new Map([['max_servers', pools.reduce((sum, pool) => sum + Math.max(0, pool.maxServers), 0)]]);
  for (const name of names) {
    sums.set(
      `max_${name.replaceAll('-', '_')}`,
      pools.reduce((sum, { limits }) => sum + (limits[name] ?? Infinity), 0),
    );
  }
  for (const [name, sum] of sums) if (!Number.isFinite(sum)) sums.delete(name);
  return sums;
}
