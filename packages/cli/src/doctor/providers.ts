/** Checks drivers, the access to each cloud, and limits against their use. Reads only. */

import type { Clock, Logger, Provider, ProviderConfig, RandomSource } from '@nodepool/core';
import { isError, QuotaInformation, remedyFor, toDriverError } from '@nodepool/core';
import type { NodeEntry, Store } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import { CommandError } from '../command-context.js';
import { withStartedProvider } from '../started-provider.js';
import { Findings, type Finding } from './finding.js';

const TIMEOUT_MS = 20_000;
/** From this share of a limit on, requests may have to wait. */
const NEAR = 0.9;

export interface ProviderSources {
  readonly config: NodepoolConfig;
  /** Undefined if ZooKeeper cannot be reached; the use of limits is then unknown. */
  readonly store: Store | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly interrupted: AbortSignal;
}

export async function checkProviders(sources: ProviderSources): Promise<readonly Finding[]> {
  const { config } = sources;
  const findings = new Findings('providers');
  for (const [name, { driver, reason }] of config.brokenProviders) {
    findings.error(`provider ${name}`, `its driver ${driver} cannot be used: ${reason}`, 'nodepool drivers');
  }
  await Promise.all([...config.providers.values()].map((provider) => checkProvider(sources, provider, findings)));
  reportTenants(sources, findings);
  return findings.list;
}

async function checkProvider(sources: ProviderSources, config: ProviderConfig, findings: Findings): Promise<void> {
  const provider = sources.config.loadedDrivers.get(config.driver)?.getProvider(config);
  if (provider === undefined) return;
  const { store } = sources;
  const nodes = store === undefined ? undefined : [...store.nodes.ofProvider(config.name)];
  reportPools(config, nodes, findings);
  const started = sources.clock.monotonic();
  try {
    const limits = await readCloud(sources, provider);
    const ms = Math.round(sources.clock.monotonic() - started);
    findings.ok(`provider ${config.name}`, `driver ${config.driver}; the cloud has answered within ${ms} ms`);
    if (limits !== undefined && nodes !== undefined) reportQuota(config.name, limits, nodes, findings);
  } catch (error) {
    sources.interrupted.throwIfAborted();
    const { code } = toDriverError(error instanceof CommandError ? error.cause : error);
    const reason = isError(error) ? error.message : String(error);
    findings.error(`provider ${config.name}`, reason, remedyFor(code));
  }
}

/** Makes one cheap call. Resolves with the limits of the cloud if it reports any. */
async function readCloud(sources: ProviderSources, provider: Provider): Promise<QuotaInformation | undefined> {
  return withStartedProvider(sources, provider, TIMEOUT_MS, async (call) => {
    if (provider.getQuotaLimits !== undefined) return provider.getQuotaLimits(call);
    await provider.listNodes(call);
    return undefined;
  });
}

function reportPools(
  { name: provider, pools }: ProviderConfig,
  nodes: readonly NodeEntry[] | undefined,
  findings: Findings,
): void {
  for (const { name, maxServers } of pools.values()) {
    const object = `pool ${provider}/${name}`;
    if (maxServers <= 0) findings.info(object, 'max-servers disables it');
    else if (maxServers !== Infinity && nodes !== undefined) {
      const used = nodes.filter(({ node }) => node.pool === name).length;
      reportUse(findings, object, 'max-servers', used, maxServers);
    }
  }
}

function reportQuota(
  provider: string,
  limits: QuotaInformation,
  nodes: readonly NodeEntry[],
  findings: Findings,
): void {
  const used = nodes.reduce(
    (sum, { node }) => sum.add(QuotaInformation.use(node.resources ?? { instances: 1 })),
    QuotaInformation.use({}),
  );
  for (const [resource, limit] of limits.entries()) {
    reportUse(findings, `provider ${provider}`, `quota of ${resource}`, used.get(resource), limit);
  }
}

function reportTenants({ config, store }: ProviderSources, findings: Findings): void {
  if (store === undefined) return;
  for (const [tenant, limits] of config.tenantLimits) {
    const nodes = [...store.nodes.all()].filter(({ node }) => node.tenant_name === tenant);
    for (const [resource, limit] of Object.entries(limits)) {
      const used = nodes.reduce((sum, { node }) => sum + (node.resources?.[resource] ?? 0), 0);
      reportUse(findings, `tenant ${tenant}`, resource, used, limit);
    }
  }
}

function reportUse(findings: Findings, object: string, what: string, used: number, limit: number): void {
  const text = `${used} of ${limit} in use (${what})`;
  const remedy = 'raise the limit, or wait: requests beyond it wait';
  if (used >= limit && limit >= 0) findings.warning(object, text, remedy);
  else if (used >= limit * NEAR) findings.info(object, text);
  else findings.ok(object, text);
}
