/**
 * Serves one pool of a provider: decides which requests the pool could serve, leaves to others or declines, as soon as
 * something changes that the decision depends on. In which order they are served is the matter of `service.ts`.
 */

import {
  QuotaInformation,
  type Change,
  type Logger,
  type NodeEntry,
  type NodeHandle,
  type NodeRequest,
  type NodeRequestData,
  type PoolConfig,
  type Provider,
  type RequestEntry,
} from '@nodepool/core';
import { isUnfinished } from './cleanup/deletable-nodes.js';
import type { Concurrency } from './concurrency.js';
import type { LauncherContext } from './context.js';
import { DeferredRequests } from './deferred-requests.js';
import type { PoolActivity } from './observe/activity.js';
import type { Pool } from './pool.js';
import { PoolLabels } from './pool-labels.js';
import { PoolRegistration, poolComponent } from './pool-registration.js';
import type { ProviderLimits } from './provider-limits.js';
import type { Place, QuotaLedger } from './quota-ledger.js';
import { excessInWords, useOf, type Lack } from './quota-scope.js';
import type { HandlerPool } from './request-handler.js';
import { Reconsideration } from './reconsideration.js';
import { Service } from './service.js';
import { afterDecline, belongsElsewhere, judge, type PoolAbilities } from './suitability.js';

/** What the pools of a provider share, and what providers share. */
export interface Resourcing {
  readonly ledger: QuotaLedger;
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
  private readonly limit: QuotaInformation;
  private readonly service: Service;
  private readonly deferred: DeferredRequests;
  private readonly abilities: PoolAbilities;
  private registration: PoolRegistration | undefined;
  private unsubscribe: (() => void)[] = [];
  private readonly reconsideration: Reconsideration;
  /** Registered, and not stopped. */
  private serving = false;
  /** Every request has been looked at once: none is served before one that comes first. */
  private knowsAll = false;

  constructor(
    readonly context: LauncherContext,
    readonly provider: Provider,
    readonly config: PoolConfig,
    private readonly resourcing: Resourcing,
    private readonly signal: AbortSignal,
  ) {
    const { name } = provider.config;
    this.id = `${context.hostname}-PoolWorker.${name}-${config.name}-${context.random.uuidHex()}`;
    this.log = context.log.with({ provider: name, pool: config.name });
    this.by = `${name}/${config.name}`;
    this.place = { provider: name, pool: config.name, ignoreProviderQuota: config.ignoreProviderQuota ?? false };
    this.ledger = resourcing.ledger;
    this.limit = QuotaInformation.limit({ ...config.limits, instances: config.maxServers });
    this.labels = new PoolLabels(context, provider, config, signal, this.log, () => this.reconsiderAll());
    this.deferred = new DeferredRequests(context.clock, (id) => this.consider(id, context.store.requests.get(id)));
    this.abilities = this.makeAbilities();
    this.reconsideration = this.makeReconsideration();
    this.service = new Service(
      this,
      this,
      resourcing.concurrency,
      resourcing.limits,
      {
        decides: () => this.knowsAll && this.decides(),
        stillServes: (entry) => this.stillServes(entry),
        blocked: (blocked) => this.registration?.blocked(blocked),
      },
      (requestId, failed) => this.finished(requestId, failed),
    );
  }

  /** Resolves once the pool is registered and takes requests. */
  async start(): Promise<void> {
    const { store } = this.context;
    await this.labels.load();
    if (this.signal.aborted) return;
    this.ledger.setPoolLimit(this.place.provider, this.place.pool, this.limit);
    const component = poolComponent(this.context, this.id, this.provider.config.name, this.config);
    this.registration = new PoolRegistration(this.context, component);
    await this.registration.registered(this.signal);
    this.serving = true;
    this.unsubscribe = [
      store.nodes.onChange((change) => this.onNode(change)),
      store.requests.onChange((change) => this.onRequest(change)),
      store.components.onChange(() => this.reconsiderAll()),
      store.images.onChange((image) => {
        if (this.labels.imageChanged(image)) this.reconsiderAll();
      }),
      store.onComplete(() => this.reconsiderAll()),
      this.resourcing.limits.onRead((changed) => {
        // A cloud that refuses what its limits allow goes on to do so.
        if (changed) this.service.shortage.end();
        this.reconsiderAll();
      }),
    ];
    this.reconsiderAll();
    this.log.info('Pool serves requests', { labels: [...this.config.labels.keys()], id: this.id });
  }

  /** Requests in the hands of this pool. */
  get requests(): number {
    return this.service.acceptances.size;
  }

  /** Takes no more requests, lets go of those in progress and leaves the registry. */
  async stop(): Promise<void> {
    this.serving = false;
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.deferred.stop();
    this.reconsideration.stop();
    this.service.stop();
    await this.registration?.close();
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
      deferred: this.deferred.size,
      outOfRoom: service.shortage.lasts,
      ...this.ledger.amountsOf(this.place),
      labels: [...this.config.labels.keys()].map((label) => ({
        label,
        obstacle: this.labels.upcoming([label]) ?? this.obstacle([label], null),
      })),
      requests: service.acceptances.activity(),
    };
  }

  /** To be called when limits of tenants have changed. */
  tenantLimitsChanged(): void {
    this.reconsiderAll();
  }

  declined(request: NodeRequest): Partial<NodeRequestData> {
    return afterDecline(request, this.id, this.context.store.components);
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
    const { store } = this.context;
    const [first] = this.ledger.isLimited(request.tenant_name) ? handedOver : [];
    if (lastId === '' && first === undefined) return undefined;
    do {
      if (!store.complete) await store.ready({ signal: this.signal });
      await store.nodes.known(lastId);
      // The cache has what was written before ours when a later read is answered.
      if (first !== undefined) await store.nodes.read(first.id, { signal: this.signal });
    } while (!store.complete);
    const need = this.labels.needOf(labels);
    const tenantNeed = handedOver.reduce((sum, { node }) => sum.add(useOf(node.resources)), need);
    return this.ledger.confirm(this.place, request, lastId, { need, tenantNeed });
  }

  labelFailed(label: string, reason: string): void {
    this.context.decisions.record('label', label, this.by, 'out of service: the cloud refuses it', reason);
    this.labels.failed(label, reason);
  }

  decided(requestId: string, what: string, reason?: string): void {
    this.context.decisions.record('request', requestId, this.by, what, reason);
  }

  private onNode({ before, after }: Change<NodeEntry>): void {
    const node = (after ?? before)?.node;
    if (node?.provider !== this.place.provider) return;
    if (node.allocated_to !== null && after?.locked !== true) this.nodeOfRequestChanged(node.allocated_to);
    const available = after?.node.state === 'ready' && after.node.allocated_to === null && !after.locked;
    // A launch that the cloud has refused leaves a record of nothing, whose end makes no room.
    if (after === undefined && node.external_id !== null) this.service.shortage.end();
    if (after === undefined || available) this.service.wake();
  }

  /** What becomes of a lost request depends on the nodes that it has. */
  private nodeOfRequestChanged(requestId: string): void {
    const entry = this.context.store.requests.get(requestId);
    if (entry?.locked === false) this.consider(requestId, entry);
  }

  private onRequest({ id, after }: Change<RequestEntry>): void {
    if (after === undefined) this.service.acceptances.withdrawn(id);
    this.consider(id, after);
  }

  /** Everything that a decision depends on may have changed. */
  private reconsiderAll(): void {
    if (this.decides()) this.reconsideration.begin();
  }

  private makeReconsideration(): Reconsideration {
    const { requests } = this.context.store;
    function* undecided(): Iterable<string> {
      for (const { id } of requests.inState('requested')) yield id;
      for (const { id } of requests.inState('pending')) yield id;
    }
    return new Reconsideration(
      this.context.clock,
      undecided,
      (id) => this.consider(id, requests.get(id)),
      () => {
        this.knowsAll ||= this.decides();
        this.service.wake();
      },
    );
  }

  /** Decisions are taken only while everything that they are based on is known completely. */
  private decides(): boolean {
    return this.serving && this.context.store.complete && this.context.store.components.complete;
  }

  private stillServes(entry: RequestEntry): boolean {
    if (judge(entry.request, this.abilities, this.context.store.components).kind === 'serve') return true;
    this.consider(entry.id, entry);
    return false;
  }

  private consider(id: string, entry: RequestEntry | undefined): void {
    const { service } = this;
    const waited = service.remove(id);
    if (entry === undefined || entry.locked || service.acceptances.has(id) || this.deferred.has(id)) return;
    if (!this.decides()) return;
    if (entry.request.state !== 'requested' && entry.request.state !== 'pending') return;
    const { components } = this.context.store;
    if (entry.request.state === 'pending' && belongsElsewhere(id, this.context.store, this.by)) return;
    const verdict = judge(entry.request, this.abilities, components);
    switch (verdict.kind) {
      case 'serve':
        // One that waits has been told what for.
        if (!waited) this.decided(id, 'can serve it');
        service.put(entry, this.abilities.hasBegun(entry.request));
        return;
      case 'leave':
        this.decided(id, 'leaves it to others', verdict.reason);
        return;
      case 'decline':
        service.acceptances.decline(entry, verdict.reason);
    }
  }

  private finished(requestId: string, failed: boolean): void {
    if (failed) this.deferred.add(requestId);
    this.consider(requestId, this.context.store.requests.get(requestId));
  }

  private makeAbilities(): PoolAbilities {
    return {
      id: this.id,
      providerName: this.place.provider,
      priority: this.config.priority,
      disabled: this.config.maxServers <= 0,
      hasLabel: (label) => this.config.labels.has(label),
      hasBegun: (request) => this.nodesOf(request).length > 0,
      obstacle: ({ node_types: labels, tenant_name: tenant }) => this.obstacle(labels, tenant),
      waitsFor: (request) => {
        // The locks of one who died go one by one.
        const locked = this.nodesOf(request).find((entry) => entry.locked);
        if (locked !== undefined) return `node ${locked.id}, which it has, is still locked`;
        return this.labels.upcoming(request.node_types);
      },
    };
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
