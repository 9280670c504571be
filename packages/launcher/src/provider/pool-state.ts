/** The facts about one pool of a running provider that decisions about requests depend on. */

import type { Logger, NodeRequest, PoolConfig, Provider } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import { MAX_OUTAGE_WAIT_MS } from '../cloud-outage.js';
import type { LauncherContext } from '../context.js';
import type { LabelActivity } from '../diagnostics/activity.js';
import type { Wait } from '../diagnostics/timeline-recorder.js';
import { isUnfinished } from '../deletion/node-lifecycle.js';
import { describeExcess } from '../quota/need.js';
import type { ProviderLimits } from '../quota/provider-limits.js';
import type { Place, QuotaLedger } from '../quota/quota-ledger.js';
import type { Candidates } from '../requests/candidate-pools.js';
import type { PoolView } from '../requests/pool-view.js';
import type { NodeSupplier } from './node-supply.js';
import { PoolLabels } from './pool-labels.js';
import type { ProviderHealth } from './provider-health.js';

/** Parts that the facts come from. */
export interface PoolSources {
  readonly ledger: QuotaLedger;
  readonly candidates: Candidates;
  readonly health: ProviderHealth;
  readonly limits: ProviderLimits;
  readonly supply: NodeSupplier;
}

export class PoolState implements PoolView {
  readonly id: string;
  readonly name: string;
  readonly place: Place;
  readonly labels: PoolLabels;
  readonly log: Logger;
  readonly ledger: QuotaLedger;
  readonly candidates: Candidates;
  readonly supply: NodeSupplier;
  /** True once the provider has started. */
  running = false;
  /** Milliseconds since the epoch: requests wait for the start of the provider since then at the earliest. */
  private readonly since: number;

  constructor(
    readonly context: LauncherContext,
    readonly provider: Provider,
    readonly config: PoolConfig,
    private readonly sources: PoolSources,
    readonly signal: AbortSignal,
    /** Called when a label that could not be served can be from now on. */
    onLabelReady: () => void,
  ) {
    const { name } = provider.config;
    this.id = `${context.fqdn}-PoolWorker.${name}-${config.name}-${context.random.uuidHex()}`;
    this.name = `${name}/${config.name}`;
    this.log = context.log.with({ provider: name, pool: config.name });
    this.place = { provider: name, pool: config.name, ignoreProviderQuota: config.ignoreProviderQuota ?? false };
    this.ledger = sources.ledger;
    this.candidates = sources.candidates;
    this.supply = sources.supply;
    this.labels = new PoolLabels(context, provider, config, signal, this.log, onLabelReady);
    this.since = context.clock.now();
  }

  get trouble(): string | undefined {
    const { health } = this.sources;
    return health.avoided ? health.state.reason : undefined;
  }

  hasNodesOf(request: NodeRequest): boolean {
    return this.nodesOf(request).length > 0;
  }

  obstacle({ node_types: labels, tenant_name: tenant, reuse }: NodeRequest): string | undefined {
    return this.startObstacle() ?? this.supplyObstacle(labels, reuse) ?? this.labelObstacle(labels, tenant);
  }

  waitsFor(request: NodeRequest): Wait | undefined {
    const start = this.startObstacle();
    if (start !== undefined) return this.mayWaitForStart(request) ? { kind: 'capacity', reason: start } : undefined;
    // The locks of a launcher that died are removed one by one.
    const locked = this.nodesOf(request).find((entry) => entry.locked);
    if (locked !== undefined) return { kind: 'order', reason: `node ${locked.id}, which it has, is still locked` };
    const upcoming = this.labels.upcoming(request.node_types);
    return upcoming === undefined ? undefined : { kind: 'image', reason: upcoming };
  }

  canServe({ node_types: labels, tenant_name: tenant }: NodeRequest): boolean {
    return this.labelObstacle(labels, tenant) === undefined;
  }

  labelActivity(): LabelActivity[] {
    return [...this.config.labels.keys()].map((label) => ({
      label,
      obstacle: this.startObstacle() ?? this.labels.upcoming([label]) ?? this.labelObstacle([label], null),
    }));
  }

  /** Returns the reason why nothing can be served yet; undefined once the provider has started. */
  private startObstacle(): string | undefined {
    if (this.running) return undefined;
    const { name } = this.provider.config;
    const { reason } = this.sources.health.state;
    return reason === undefined ? `provider ${name} is starting` : `provider ${name} is in trouble: ${reason}`;
  }

  /** Returns false if the request has waited long enough for the start of the provider. */
  private mayWaitForStart({ created_time: created }: NodeRequest): boolean {
    const since = Math.max((created ?? 0) * 1000, this.since);
    return this.context.clock.now() - since < MAX_OUTAGE_WAIT_MS;
  }

  /** Returns nodes of this pool with which the request can continue, if no launcher works on it. */
  private nodesOf({ id, state }: NodeRequest): readonly NodeEntry[] {
    return this.context.store.nodes.allocatedTo(id).filter(({ node }) => {
      if (node.provider !== this.place.provider || node.pool !== this.place.pool) return false;
      return node.state === 'ready' || (state === 'pending' && isUnfinished(node));
    });
  }

  /** Returns the reason why a provider that creates no nodes can never serve these labels. */
  private supplyObstacle(labels: readonly string[], reuse: boolean): string | undefined {
    if (this.provider.config.createsNodes !== false) return undefined;
    if (!reuse) return 'it asks for new nodes, and the provider creates none';
    return this.supply.shortage(this.config.name, labels);
  }

  /** Returns the reason why the labels cannot be served together, now or ever. */
  private labelObstacle(labels: readonly string[], tenant: string | null): string | undefined {
    const obstacle = this.labels.obstacle(labels);
    if (obstacle !== undefined) return obstacle;
    const need = this.labels.needOf(labels);
    for (const scope of this.ledger.scopesOf(this.place, tenant)) {
      // Resources of the provider that are in use by other projects may be free one day.
      const limit = scope.kind === 'provider' ? this.sources.limits.total : scope.limit;
      const excess = describeExcess(scope.name, limit, need);
      if (excess !== undefined) return excess;
    }
    return undefined;
  }
}
