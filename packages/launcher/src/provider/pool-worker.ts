/**
 * Serves one pool of a provider: decides which requests the pool could serve, leaves to others or declines, as soon as
 * something changes that the decision depends on. It is registered before its provider is started, and decides from then on,
 * but serves only once the provider has started. In which order requests are served is the matter of
 * `request-scheduler.ts`.
 */

import {
  QuotaInformation,
  type DriverError,
  type Logger,
  type NodeRequest,
  type NodeRequestData,
  type PoolConfig,
  type Provider,
  type Timer,
} from '@nodepool/core';
import type { Change, NodeEntry, NodeHandle, RequestEntry } from '@nodepool/store';
import type { CandidatePools } from '../requests/candidate-pools.js';
import { isUnfinished } from '../maintenance/deletable-nodes.js';
import { OUTAGE_PATIENCE_MS } from './cloud-outage.js';
import type { Concurrency } from '../scheduling/concurrency.js';
import type { LauncherContext } from '../context.js';
import type { PoolActivity } from '../diagnostics/activity.js';
import type { Pool } from './pool.js';
import { PoolLabels } from './pool-labels.js';
import { PoolRegistration, poolComponent } from './pool-registration.js';
import type { ProviderHealth } from './provider-health.js';
import type { ProviderLimits } from '../quota/provider-limits.js';
import type { Place, QuotaLedger } from '../quota/quota-ledger.js';
import { excessInWords, useOf, type Lack } from '../quota/quota-scope.js';
import type { HandlerPool } from '../requests/request-handler.js';
import { PoolScheduler } from '../scheduling/pool-scheduler.js';
import type { RequestScheduler } from '../scheduling/request-scheduler.js';
import {
  afterDecline,
  belongsElsewhere,
  canBeServedElsewhere,
  judge,
  type PoolAbilities,
  type Verdict,
} from '../requests/suitability.js';
import type { TurnGate } from '../quota/turn-gate.js';

/** While the provider starts, requests that have waited for it for too long are looked for at this interval, milliseconds. */
const START_CHECK_MS = 60_000;

/** What the pools of a provider share, and what providers share. */
export interface Resourcing {
  readonly ledger: QuotaLedger;
  readonly candidates: CandidatePools;
  readonly scheduler: RequestScheduler;
  readonly labelGate: TurnGate;
  readonly health: ProviderHealth;
  readonly limits: ProviderLimits;
  readonly concurrency: Concurrency;
}

export class PoolWorker implements Pool, HandlerPool {
  readonly id: string;
  readonly by: string;
  readonly place: Place;
  readonly labels: PoolLabels;
  readonly log: Logger;
  readonly ledger: QuotaLedger;
  private readonly service: PoolScheduler;
  private readonly abilities: PoolAbilities;
  private readonly registration: PoolRegistration;
  private readonly leave: () => void;
  private startCheck: Timer | undefined;
  private unsubscribe: (() => void)[] = [];
  /** Registered, and not stopped. */
  private deciding = false;
  /** The provider has started. */
  private running = false;
  /** Milliseconds since the epoch: requests do not wait for the provider since before that. */
  private readonly since: number;

  constructor(
    readonly context: LauncherContext,
    readonly provider: Provider,
    readonly config: PoolConfig,
    private readonly resourcing: Resourcing,
    private readonly signal: AbortSignal,
  ) {
    const { name } = provider.config;
    this.id = `${context.fqdn}-PoolWorker.${name}-${config.name}-${context.random.uuidHex()}`;
    this.log = context.log.with({ provider: name, pool: config.name });
    this.by = `${name}/${config.name}`;
    this.place = { provider: name, pool: config.name, ignoreProviderQuota: config.ignoreProviderQuota ?? false };
    this.ledger = resourcing.ledger;
    this.labels = new PoolLabels(context, provider, config, signal, this.log, () => this.reconsiderAll());
    this.abilities = this.makeAbilities();
    this.service = new PoolScheduler(this, this, resourcing.scheduler, resourcing.concurrency, resourcing.limits, {
      judge: (entry) => this.judge(entry),
      blocked: (blocked) => this.registration.blocked(blocked),
    });
    this.since = context.clock.now();
    this.ledger.setPoolLimit(
      name,
      config.name,
      QuotaInformation.limit({ ...config.limits, instances: config.maxServers }),
    );
    const component = poolComponent(context, this.id, name, config);
    this.leave = resourcing.candidates.add(component);
    this.registration = new PoolRegistration(context, component);
    context.tasks.run(`register pool ${this.by}`, () => this.register());
  }

  /** Resolves once the pool takes requests. The provider must have been started. */
  async start(): Promise<void> {
    await this.labels.load(this.resourcing.labelGate);
    if (this.signal.aborted) return;
    await this.registration.running();
    this.running = true;
    this.reconsiderAll();
    this.log.info('Pool serves requests', { labels: [...this.config.labels.keys()], id: this.id });
  }

  private async register(): Promise<void> {
    try {
      await this.registration.registered(this.signal);
    } catch (error) {
      if (this.signal.aborted) return;
      throw error;
    }
    const { store } = this.context;
    this.deciding = true;
    this.unsubscribe = [
      store.images.onChange((image) => {
        if (this.running && this.labels.imageChanged(image)) this.reconsiderAll();
      }),
      this.resourcing.limits.onRead((changed) => {
        // A cloud that refuses what its limits allow goes on to do so.
        if (changed) this.service.shortage.end();
        this.reconsiderAll();
      }),
    ];
    this.resourcing.scheduler.add(this.service);
    this.checkWhileStarting();
  }

  /**
   * Takes no more requests, releases those in progress and leaves the registry. Nothing is begun under the pool's limits
   * after that.
   */
  async stop(): Promise<void> {
    this.deciding = false;
    this.startCheck?.cancel();
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    await Promise.all([this.service.stop(), this.registration.close()]);
    this.leave();
  }

  /** To be called when the state of the provider has changed. */
  healthChanged(): void {
    this.registration.trouble(this.resourcing.health.avoided);
    this.reconsiderAll();
  }

  /** What it is doing, for the stack dump and for explanations. */
  activity(): PoolActivity {
    const { service } = this;
    return {
      pool: this.config.name,
      id: this.id,
      waiting: service.size,
      next: service.next?.id,
      accepting: service.acceptances.accepting,
      deferred: this.resourcing.scheduler.deferredCount,
      outOfRoom: service.shortage.lasts,
      ...this.ledger.amountsOf(this.place),
      labels: [...this.config.labels.keys()].map((label) => ({
        label,
        obstacle: this.startsUp() ?? this.labels.upcoming([label]) ?? this.obstacle([label], null),
      })),
      requests: service.acceptances.activity(),
    };
  }

  /** To be called when limits of tenants have changed. */
  tenantLimitsChanged(): void {
    this.reconsiderAll();
  }

  /** To be called when a node of the provider has changed. */
  nodeChanged({ before, after }: Change<NodeEntry>): void {
    const node = (after ?? before)?.node;
    if (!this.deciding || node === undefined) return;
    const available = after?.node.state === 'ready' && after.node.allocated_to === null && !after.locked;
    // A launch that the cloud has refused leaves a record of nothing, whose end makes no room.
    if (after === undefined && node.external_id !== null) this.service.shortage.end();
    if (after === undefined || available) this.service.wake();
  }

  declined(request: NodeRequest): Partial<NodeRequestData> {
    return afterDecline(request, this.id, this.resourcing.candidates);
  }

  outOfRoom(): void {
    this.service.shortage.begin();
    this.resourcing.limits.invalidate();
  }

  async confirm(
    request: NodeRequest,
    lastId: string,
    labels: readonly string[],
    handedOver: readonly NodeHandle[],
  ): Promise<Lack | undefined> {
    const isLimited = this.ledger.isLimited(request.tenant_name);
    if (lastId === '' && !isLimited) return undefined;
    await this.known(lastId, isLimited ? (handedOver[0]?.id ?? lastId) : undefined);
    const need = this.labels.needOf(labels);
    const tenantNeed = handedOver.reduce((sum, { node }) => sum.add(useOf(node.resources)), need);
    return this.ledger.confirm(this.place, request, lastId, { need, tenantNeed });
  }

  async retryLack(request: NodeRequest, lastId: string, label: string): Promise<Lack | undefined> {
    await this.known(lastId);
    const need = this.labels.need(label);
    return this.ledger.retryLack(this.place, request, lastId, { need, tenantNeed: need });
  }

  /** Resolves when the ledger counts every record up to this id, and hand-overs that were written before node `later`. */
  private async known(lastId: string, later?: string): Promise<void> {
    const { store } = this.context;
    do {
      if (!store.complete) await store.ready({ signal: this.signal });
      await store.nodes.known(lastId);
      // The cache has what was written before ours when a later read is answered.
      if (later !== undefined) await store.nodes.read(later, { signal: this.signal });
    } while (!store.complete);
  }

  labelRefused(label: string, zone: string | undefined, reason: string): void {
    const lastsMs = this.labels.refused(label, zone, reason);
    this.context.decisions.record('label', label, this.by, 'out of service: the cloud refuses it', reason);
    this.log.warn('A label is out of service: the cloud refuses it', { label, zone, reason, retry_in_ms: lastsMs });
  }

  canServe({ node_types: labels, tenant_name: tenant }: NodeRequest): boolean {
    return this.obstacle(labels, tenant) === undefined;
  }

  canMoveOn(request: NodeRequest): boolean {
    return canBeServedElsewhere(request, this.id, this.resourcing.candidates);
  }

  movedOn(failure: DriverError): void {
    this.resourcing.health.movedOn(failure);
  }

  attempted(label: string, zone: string | undefined, failure: DriverError | undefined): void {
    if (failure !== undefined) {
      this.resourcing.health.launchFailed(failure);
      return;
    }
    this.resourcing.health.launched();
    this.labels.launched(label, zone);
  }

  decided(requestId: string, what: string, reason?: string): void {
    this.context.decisions.record('request', requestId, this.by, what, reason);
  }

  /** Everything that a decision depends on may have changed. */
  private reconsiderAll(): void {
    if (this.deciding) this.service.reconsider();
  }

  private judge({ id, request }: RequestEntry): Verdict | undefined {
    const { candidates } = this.resourcing;
    if (request.state === 'pending' && belongsElsewhere(id, this.context.store, candidates, this.by)) return undefined;
    return judge(request, this.abilities, candidates);
  }

  private checkWhileStarting(): void {
    if (this.running || !this.deciding) return;
    this.startCheck = this.context.clock.schedule(START_CHECK_MS, () => {
      this.reconsiderAll();
      this.checkWhileStarting();
    });
  }

  /** Why nothing can be served yet; undefined once the provider has started. */
  private startsUp(): string | undefined {
    if (this.running) return undefined;
    const { name } = this.provider.config;
    const { reason } = this.resourcing.health.state;
    return reason === undefined ? `provider ${name} is starting` : `provider ${name} is in trouble: ${reason}`;
  }

  private makeAbilities(): PoolAbilities {
    const { health } = this.resourcing;
    return {
      id: this.id,
      get trouble() {
        return health.avoided ? health.state.reason : undefined;
      },
      providerName: this.place.provider,
      priority: this.config.priority,
      disabled: this.config.maxServers <= 0,
      hasLabel: (label) => this.config.labels.has(label),
      hasBegun: (request) => this.nodesOf(request).length > 0,
      obstacle: ({ node_types: labels, tenant_name: tenant }) => this.startsUp() ?? this.obstacle(labels, tenant),
      waitsFor: (request) => {
        const starts = this.startsUp();
        if (starts !== undefined) return this.isPatient(request) ? starts : undefined;
        // The locks of one who died go one by one.
        const locked = this.nodesOf(request).find((entry) => entry.locked);
        if (locked !== undefined) return `node ${locked.id}, which it has, is still locked`;
        return this.labels.upcoming(request.node_types);
      },
    };
  }

  /** False if the request has waited for the start of the provider for long enough. */
  private isPatient({ created_time: created }: NodeRequest): boolean {
    const since = Math.max((created ?? 0) * 1000, this.since);
    return this.context.clock.now() - since < OUTAGE_PATIENCE_MS;
  }

  /** Nodes of this pool with which one can go on that a request has which nobody works on. */
  private nodesOf({ id, state }: NodeRequest): readonly NodeEntry[] {
    return this.context.store.nodes.allocatedTo(id).filter(({ node }) => {
      if (node.provider !== this.place.provider || node.pool !== this.place.pool) return false;
      return node.state === 'ready' || (state === 'pending' && isUnfinished(node));
    });
  }

  /** Why the labels cannot be served together, now or ever. */
  private obstacle(labels: readonly string[], tenant: string | null): string | undefined {
    const obstacle = this.labels.obstacle(labels);
    if (obstacle !== undefined) return obstacle;
    const need = this.labels.needOf(labels);
    for (const scope of this.ledger.scopesOf(this.place, tenant)) {
      // What others use of the provider's limits may be free one day.
      const limit = scope.kind === 'provider' ? this.resourcing.limits.total : scope.limit;
      const excess = excessInWords(scope.name, limit, need);
      if (excess !== undefined) return excess;
    }
    return undefined;
  }
}
