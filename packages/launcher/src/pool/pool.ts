/** One pool of a running provider: the facts that decisions about requests depend on, and its offers. */

import { toDriverError } from '@nodepool/core';
import type { Logger, Node, NodeInterruption, NodeRequest, PoolConfig, Provider } from '@nodepool/core';
import type { NodeEntry } from '@nodepool/store';
import type { SlowLaunches, TimedLaunch, WatchedLaunch } from '../capacity/slow-launches.js';
import type { StrandedLaunch, StrandedLaunches } from '../capacity/stranded-launches.js';
import type { OfferPlan } from '../capacity/pool-offers.js';
import { describeObstacle, type LabelActivity, type Offer, type Refusal, type Wait } from '@nodepool/status';
import type { WaitLimits } from '../capacity/wait-limits.js';
import type { LauncherContext } from '../context.js';
import { describeExcess } from '../quota/need.js';
import type { ProviderLimits } from '../quota/provider-limits.js';
import type { PoolRef, QuotaLedger } from '../quota/quota-ledger.js';
import type { Candidates } from './candidate-pools.js';
import { resumableNodes } from '../deletion/node-lifecycle.js';
import type { ReadyNodes } from './ready-nodes.js';
import { PoolLabels } from './pool-labels.js';
import type { ProviderHealth } from '../capacity/provider-health.js';

/** The machines of a provider that creates no nodes. */
export interface MachineSupply {
  /** Returns the reason why no machine of the pool can ever serve these labels together, or undefined. */
  shortage(pool: string, labels: readonly string[]): string | undefined;
}

export interface PoolSources {
  readonly ledger: QuotaLedger;
  readonly candidates: Candidates;
  readonly health: ProviderHealth;
  readonly limits: ProviderLimits;
  readonly supply: MachineSupply;
  readonly readyNodes: ReadyNodes;
  readonly slowLaunches: SlowLaunches;
  readonly strandedLaunches: StrandedLaunches;
  readonly waitLimits: WaitLimits;
}

interface LabelObstacle extends Refusal {
  readonly cause: 'image' | 'configuration' | 'limit';
}

/** States of nodes with an instance that runs, or has run until it was lost. */
const HAVE_INSTANCES: ReadonlySet<Node['state']> = new Set(['ready', 'in-use', 'hold']);

export class Pool {
  /** Name in `declined_by`. */
  readonly id: string;
  /** `provider/pool`, as explanations name it. */
  readonly name: string;
  readonly place: PoolRef;
  readonly labels: PoolLabels;
  readonly log: Logger;
  readonly ledger: QuotaLedger;
  readonly candidates: Candidates;
  readonly readyNodes: ReadyNodes;
  readonly waitLimits: WaitLimits;
  /** True once the provider has started. */
  running = false;

  constructor(
    readonly context: LauncherContext,
    readonly provider: Provider,
    readonly config: PoolConfig,
    private readonly sources: PoolSources,
    /** Aborts when the provider is stopped. */
    readonly signal: AbortSignal,
    /** Called when a label can be served that could not be before, and after every change of the offers. */
    onLabelChange: () => void,
  ) {
    const { name } = provider.config;
    this.id = `${context.fqdn}-PoolWorker.${name}-${config.name}-${context.random.uuidHex()}`;
    this.name = `${name}/${config.name}`;
    this.log = context.log.with({ provider: name, pool: config.name });
    this.place = { provider: name, pool: config.name, ignoreProviderQuota: config.ignoreProviderQuota ?? false };
    this.ledger = sources.ledger;
    this.candidates = sources.candidates;
    this.readyNodes = sources.readyNodes;
    this.labels = new PoolLabels(context, provider, config, signal, this.log, onLabelChange);
    this.waitLimits = sources.waitLimits;
    sources.health.addPool(this.labels.offers);
  }

  /**
   * Chooses offers for nodes of these labels, all in the same zone (`zone` if given by other nodes). `skip` is the
   * number of usable machine types to skip.
   */
  planOffers(labels: readonly string[], zone: string | undefined, skip: number): OfferPlan {
    const plan = this.labels.offers.plan(labels, zone, skip);
    const { breaker } = this.sources.health;
    const obstacle = breaker.admits ? undefined : breaker.obstacle;
    if (obstacle === undefined) return plan;
    const reason = describeObstacle(`provider ${this.place.provider}`, obstacle);
    return { ...plan, blocked: { cause: obstacle.cause, reason } };
  }

  /** Returns another offer for a node whose launch has failed, in the same zone unless the node is alone. */
  alternative(failed: Offer, isAlone: boolean, isTried: (offer: Offer) => boolean): Offer | undefined {
    return this.labels.offers.alternative(failed, isAlone, isTried);
  }

  /** Returns true if the breaker of the offer, or of the provider if no offer is given, admits a launch now. */
  admits(offer?: Offer): boolean {
    return this.sources.health.breaker.admits && (offer === undefined || this.labels.offers.admits(offer));
  }

  /** Counts a node of this pool that has lost its instance in the health of its offer. */
  interrupted(node: Node, { reason, time }: NodeInterruption): void {
    const { context, labels, place } = this;
    if (!context.capacity.breakers) return;
    const offer = offerOfNode(node);
    if (offer === undefined) return;
    labels.offers.interrupted(offer, reason, time * 1000, () => {
      let count = 0;
      for (const { node: other } of context.store.nodes.ofProvider(place.provider)) {
        const same = other.pool === place.pool && HAVE_INSTANCES.has(other.state) ? offerOfNode(other) : undefined;
        if (same !== undefined && labels.offers.isSame(same, offer)) count += 1;
      }
      return count;
    });
  }

  /** Starts the probes of half-open offers. The returned function ends probes that had no result. */
  beginProbes(offers: readonly Offer[]): () => void {
    if (offers.length === 0) return () => undefined;
    const ends = [this.sources.health.breaker.begin(), this.labels.offers.begin(offers)];
    return () => ends.forEach((end) => end());
  }

  /** Starts measuring a launch with this offer, and abandons it if it is slow. */
  watch(offer: Offer, launch: WatchedLaunch): TimedLaunch {
    const { health, slowLaunches } = this.sources;
    if (this.provider.config.waitsForOthers === true) {
      return { startedAt: this.context.clock.monotonic(), end: () => false };
    }
    const isHealthy = (): boolean =>
      health.breaker.state === 'closed' && this.labels.offers.obstacleOf(offer) === undefined;
    return slowLaunches.begin({ pool: this.name, ...offer }, isHealthy, launch);
  }

  /**
   * Abandons a launch without an instance if the provider is in trouble, and one that the cloud refuses, until the
   * returned function is called.
   */
  watchProvider(launch: StrandedLaunch): () => void {
    return this.sources.strandedLaunches.begin(launch);
  }

  /** Returns true if the request is not locked and has nodes in this pool. */
  hasNodesOf(request: NodeRequest): boolean {
    return this.nodesOf(request).length > 0;
  }

  /** True while at most other launchers can use the provider. */
  get isUsableByOthersOnly(): boolean {
    return this.sources.health.isUsableByOthersOnly;
  }

  /** Returns the reason why the request cannot be served, now or ever; otherwise undefined. */
  obstacle(request: NodeRequest): Refusal | undefined {
    const { node_types: labels, tenant_name: tenant, reuse } = request;
    const supply = this.supplyObstacle(labels, reuse);
    return supply === undefined
      ? this.labelObstacle(labels, tenant, request)
      : { cause: 'configuration', reason: supply };
  }

  /** Returns what the request waits for before this pool can serve it; undefined if it waits only for capacity. */
  waitsFor(request: NodeRequest): Wait | undefined {
    const start = this.startObstacle();
    if (start !== undefined) return { kind: 'capacity', reason: start };
    // ZooKeeper removes the locks of a crashed launcher one by one.
    const locked = this.nodesOf(request).find((entry) => entry.locked);
    if (locked !== undefined) return { kind: 'order', reason: `node ${locked.id}, which it has, is still locked` };
    const upcoming = this.labels.upcoming(request.node_types, request);
    if (upcoming !== undefined) return { kind: 'image', reason: upcoming };
    const shortage = this.candidates.mayGrow ? this.shortage(request.node_types) : undefined;
    return shortage === undefined ? this.limitsWait(request) : { kind: 'limit', reason: shortage };
  }

  /** Returns true if everything that is recorded or about to be recorded certainly fits the limits of the tenant. */
  hasRoomForHeld(tenant: string | null): boolean {
    return !this.sources.limits.isOutdated && this.ledger.fits(this.place, tenant);
  }

  /** Returns each label with the reason why it cannot be served at the moment. */
  labelActivity(): LabelActivity[] {
    const start = this.startObstacle();
    return [...this.config.labels.keys()].map((label) => ({ label, ...this.readiness(label, start) }));
  }

  private readiness(label: string, start: string | undefined): Omit<LabelActivity, 'label'> {
    if (start !== undefined) return { obstacle: start, cause: 'provider' };
    const upcoming = this.labels.upcoming([label]);
    if (upcoming !== undefined) return { obstacle: upcoming, cause: 'image' };
    const { reason: obstacle, cause } = this.labelObstacle([label], null) ?? {};
    return { obstacle, cause };
  }

  /** Returns the reason why the provider cannot serve requests yet, or undefined once it has started. */
  private startObstacle(): string | undefined {
    if (this.running) return undefined;
    const { name } = this.provider.config;
    const { reason } = this.sources.health.state;
    return reason === undefined ? `provider ${name} is starting` : `provider ${name} is not served: ${reason}`;
  }

  /**
   * Returns the wait for other limits of the cloud if the request exceeds outdated ones or those of a single read, and
   * reads the limits again: they may be higher, and no other event would show that.
   */
  private limitsWait({ node_types: labels }: NodeRequest): Wait | undefined {
    const { limits } = this.sources;
    const { provider, ignoreProviderQuota } = this.place;
    if (ignoreProviderQuota) return undefined;
    const need = this.labels.leastNeed(labels);
    const excess = describeExcess(`provider ${provider}`, limits.total, need);
    if (excess === undefined || (limits.isCurrent && !limits.confirmedTotal.fits(need))) return undefined;
    limits.doubted();
    return { kind: 'limit', reason: `${excess}; the limit is being read again` };
  }

  /** Returns the nodes of this pool with which a lost request can continue. */
  private nodesOf(request: NodeRequest): readonly NodeEntry[] {
    const { provider, pool } = this.place;
    return resumableNodes(this.context.store, request).filter(
      ({ node }) => node.provider === provider && node.pool === pool,
    );
  }

  /** Returns the reason why a provider that creates no nodes can never serve these labels. */
  private supplyObstacle(labels: readonly string[], reuse: boolean): string | undefined {
    if (this.provider.config.createsNodes !== false) return undefined;
    if (!reuse) return 'it asks for new nodes, and the provider creates none';
    return this.sources.supply.shortage(this.config.name, labels);
  }

  /** Returns the reason why the driver can never have nodes of these labels together. */
  private shortage(labels: readonly string[]): string | undefined {
    try {
      return this.provider.shortage?.(this.config.name, labels);
    } catch (error) {
      this.log.error('The driver failed to say whether it can have nodes of these labels', toDriverError(error), {
        labels,
      });
      return undefined;
    }
  }

  /** Returns the reason why the labels cannot be served together, now or ever. */
  private labelObstacle(
    labels: readonly string[],
    tenant: string | null,
    request?: NodeRequest,
  ): LabelObstacle | undefined {
    const reason = this.labels.obstacle(labels, request);
    if (reason !== undefined) {
      return {
        cause: labels.some((label) => this.labels.lacksUpload(label, request)) ? 'image' : 'configuration',
        reason,
      };
    }
    const shortage = this.shortage(labels);
    if (shortage !== undefined) return { cause: 'limit', reason: shortage };
    const need = this.labels.leastNeed(labels);
    for (const scope of this.ledger.scopesOf(this.place, tenant)) {
      // Resources that other programs use at the moment may become free, so only the total limit counts.
      const limit = scope.kind === 'provider' ? this.sources.limits.confirmedTotal : scope.limit;
      const excess = describeExcess(scope.name, limit, need);
      if (excess !== undefined) return { cause: 'limit', reason: excess };
    }
    return undefined;
  }
}

/** Returns the offer with which the node was launched. */
function offerOfNode({ type: [label], az, machine_type: machineType }: Node): Offer | undefined {
  return label === undefined ? undefined : { label, zone: az ?? undefined, machineType: machineType ?? undefined };
}
