/**
 * The life cycle of one pool. The pool is registered before its provider starts and declines requests that it can never
 * serve; once the provider has started, it serves requests until it is stopped. `scheduling/request-path.ts` describes
 * the path of a request.
 */

import {
  QuotaInformation,
  shortened,
  type Node,
  type NodeInterruption,
  type PoolConfig,
  type Provider,
} from '@nodepool/core';
import type { PoolTrouble } from '@nodepool/store';
import type { SlowLaunches } from '../capacity/slow-launches.js';
import type { StrandedLaunches } from '../capacity/stranded-launches.js';
import type { WaitLimits } from '../capacity/wait-limits.js';
import type { LauncherContext } from '../context.js';
import type { PoolActivity, PoolCapacity } from '@nodepool/status';
import type { TurnLimiter } from '../quota/turn-limiter.js';
import type { CandidatePools } from '../pool/candidate-pools.js';
import type { ReadyNodes } from '../pool/ready-nodes.js';
import type { NodeSupplier } from '../supply/node-supply.js';
import { LabelReadiness } from '../pool/label-readiness.js';
import type { DatedCondition } from '../capacity/provider-health.js';
import { PoolRegistration, poolComponent } from '../pool/pool-registration.js';
import { Pool } from '../pool/pool.js';
import { RequestPath, type RequestResources } from '../scheduling/request-path.js';

/** Limit of a published reason, because the size of the component is limited. */
const MAX_REASON = 300;

/** Dependencies that the pools of a provider share, and those that providers share. */
export interface PoolResources extends RequestResources {
  readonly supply: NodeSupplier;
  readonly readyNodes: ReadyNodes;
  readonly candidates: CandidatePools;
  readonly labelLimiter: TurnLimiter;
  readonly slowLaunches: SlowLaunches;
  readonly strandedLaunches: StrandedLaunches;
  readonly waitLimits: WaitLimits;
}

/** Signals of the provider's life. */
export interface PoolSignals {
  /** Aborts when no more requests are accepted. */
  readonly retiring: AbortSignal;
  /** Aborts when the work on accepted requests ends. */
  readonly signal: AbortSignal;
}

export class PoolWorker {
  private readonly pool: Pool;
  private readonly path: RequestPath;
  private readonly registration: PoolRegistration;
  private readonly readiness: LabelReadiness;
  private readonly leave: () => void;
  private unsubscribe: (() => void)[] = [];
  /** True while the pool is registered and not stopped. */
  private deciding = false;

  constructor(
    private readonly context: LauncherContext,
    provider: Provider,
    config: PoolConfig,
    private readonly resources: PoolResources,
    private readonly signals: PoolSignals,
  ) {
    const { name } = provider.config;
    this.pool = new Pool(context, provider, config, resources, signals.signal, () => this.offersChanged());
    this.path = new RequestPath(this.pool, resources, (blocked) => this.registration.blocked(blocked));
    const limit = QuotaInformation.limit({ ...config.limits, instances: config.maxServers });
    resources.ledger.setPoolLimit(name, config.name, limit);
    const component = poolComponent(context, this.pool.id, provider.config, config);
    this.leave = resources.candidates.add(component);
    this.registration = new PoolRegistration(context, component);
    const onChange = (reasons: ReadonlyMap<string, string>): void => this.registration.labelsUnready(reasons);
    this.readiness = new LabelReadiness({
      onChange,
      ...{ clock: context.clock, metrics: context.metrics, log: this.pool.log, provider: name, pool: config.name },
      labels: () => this.pool.labelActivity(),
    });
    context.tasks.run(`register pool ${this.pool.name}`, () => this.register());
  }

  /** Starts serving requests. The provider must have been started before. */
  async start(): Promise<void> {
    const { pool } = this;
    await pool.labels.load(this.resources.labelLimiter);
    if (this.signals.retiring.aborted) return;
    await this.registration.running();
    pool.running = true;
    this.reevaluate();
    this.readiness.start();
    pool.log.info('Pool serves requests', { labels: [...pool.config.labels.keys()], id: pool.id });
  }

  /**
   * Removes the pool from the registry, and completes its accepted requests. Resolves once nothing is accepted any
   * more, and the limits of all accepted requests are confirmed.
   */
  async retire(): Promise<void> {
    this.deciding = false;
    this.readiness.stop();
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    await Promise.all([this.path.retire(), this.registration.close()]);
    this.leave();
    this.resources.slowLaunches.forget(this.pool.name);
  }

  /** Releases the requests in progress, so that they can be resumed. */
  release(): void {
    this.path.release();
  }

  /** Resolves once no accepted request is left. Nothing is launched for the pool afterwards. */
  idle(): Promise<void> {
    return this.path.idle();
  }

  healthChanged(): void {
    this.publishClosedLabels();
    this.registration.troubleChanged(troubleOf(this.resources.health.state));
    this.reevaluate();
  }

  /** Handles a node of the pool that has lost its instance. */
  nodeInterrupted(node: Node, interruption: NodeInterruption): void {
    if (node.pool === this.pool.config.name) this.pool.interrupted(node, interruption);
  }

  tenantLimitsChanged(): void {
    this.reevaluate();
  }

  /** Handles new machines, and machines that went into or out of service. */
  supplyChanged(): void {
    this.registration.outOfService(this.resources.supply.outages(this.pool.config.name));
    this.reevaluate();
  }

  /** Handles ready nodes that can be handed out again. */
  readyNodesChanged(): void {
    this.reevaluate();
  }

  /** Handles a free node or a removed record. `isInstanceRemoved` is true if the cloud has deleted an instance. */
  capacityFreed(isInstanceRemoved: boolean): void {
    if (this.deciding) this.path.capacityFreed(isInstanceRemoved);
  }

  /** Returns what the pool is doing, for the stack dump and for explanations. */
  activity(): PoolActivity {
    const { pool } = this;
    return {
      pool: pool.config.name,
      id: pool.id,
      ...this.path.activity(),
      ...pool.ledger.amountsOf(pool.place),
      labels: pool.labelActivity(),
    };
  }

  /** Returns what the limits of the pool leave, and what its labels need. */
  capacity(): PoolCapacity {
    const { ledger, place, labels, config, provider: served } = this.pool;
    const { provider, pool, ignoreProviderQuota: ignoresProviderQuota } = place;
    const needs = Object.fromEntries(
      [...config.labels.keys()].map((label) => [label, labels.leastNeed([label]).toResources()]),
    );
    // A drained pool launches nothing, whatever its limits leave.
    const drained = served.config.maxConcurrency === 0 ? { instances: 0 } : {};
    return { provider, pool, ignoresProviderQuota, free: { ...ledger.freeIn(place), ...drained }, needs };
  }

  private async register(): Promise<void> {
    try {
      await this.registration.registered(this.signals.retiring);
    } catch (error) {
      if (this.signals.retiring.aborted) return;
      throw error;
    }
    this.deciding = true;
    this.unsubscribe = [
      this.context.store.images.onChange((image) => {
        if (this.pool.running && this.pool.labels.imageChanged(image)) this.reevaluate();
      }),
      this.resources.limits.onRead((changed) => this.path.limitsRead(changed)),
    ];
    this.path.start();
  }

  private offersChanged(): void {
    this.publishClosedLabels();
    this.resources.health.refresh();
    this.reevaluate();
  }

  private publishClosedLabels(): void {
    const { health } = this.resources;
    const { labels, config } = this.pool;
    const isClosed = !health.breaker.admits || health.isStartFailing;
    this.registration.offersChanged(isClosed ? [...config.labels.keys()] : labels.offers.closedLabels());
  }

  private reevaluate(): void {
    if (this.deciding) this.path.reevaluate();
  }
}

function troubleOf({ state, trouble, since }: DatedCondition): PoolTrouble | undefined {
  if (state === 'starting' || state === 'serving' || trouble === undefined) return undefined;
  const { cause, fault } = trouble;
  return { state, cause, reason: shortened(fault, MAX_REASON), since: since / 1000 };
}
