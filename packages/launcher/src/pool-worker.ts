/**
 * Serves one pool of a provider: decides about every request that the pool could serve, in the order of service, as
 * soon as something changes that the decision depends on.
 */

import {
  MIN_READY_REQUESTOR,
  type AcceptedRequest,
  type Change,
  type LogFields,
  type Logger,
  type NodeData,
  type NodeEntry,
  type NodeRequest,
  type NodeRequestData,
  type NodeRequestHandler,
  type PoolConfig,
  type Provider,
  type RequestEntry,
} from '@nodepool/core';
import { assign, inWords, type AssigningPool, type Assignment, type Part } from './assignment.js';
import type { Concurrency } from './concurrency.js';
import type { LauncherContext } from './context.js';
import { unixSeconds } from './context.js';
import { DeferredRequests } from './deferred-requests.js';
import { plannedNode } from './node-record.js';
import type { PoolActivity } from './observe/activity.js';
import { QuotaLedger, type Reservation } from './quota-ledger.js';
import { RequestHandler, requestInfo, slotsOf, type HandlerPool } from './request-handler.js';
import { PoolLabels } from './pool-labels.js';
import { PoolRegistration, poolComponent } from './pool-registration.js';
import { Shortage } from './shortage.js';
import { afterDecline, belongsElsewhere, judge, type PoolAbilities } from './suitability.js';
import { WaitingRequests } from './waiting-requests.js';

/** A part of an assignment for which a node is made. */
type Launch = Extract<Part, { readonly kind: 'launch' }>;

/** Requests whose records are being written at a time: enough to keep ZooKeeper busy, few enough to leave others a turn. */
const MAX_ACCEPTING = 32;

export class PoolWorker implements HandlerPool {
  /** What goes into `declined_by`. */
  readonly id: string;
  private readonly waiting = new WaitingRequests();
  /** Of those, the ones that have nodes here already: lost by their launcher, and not to wait behind others. */
  private readonly begun = new Map<string, RequestEntry>();
  private readonly handlers = new Map<string, RequestHandler | undefined>();
  private readonly claimedNodes = new Set<string>();
  private readonly ledger: QuotaLedger;
  private readonly labels: PoolLabels;
  private readonly log: Logger;
  /** Who decides, in explanations. */
  private readonly by: string;
  private registration: PoolRegistration | undefined;
  private unsubscribe: (() => void)[] = [];
  private accepting = 0;
  private readonly deferred: DeferredRequests;
  private woken = false;
  private stopped = false;
  private readonly shortage: Shortage;
  private readonly assigning: AssigningPool;
  private readonly abilities: PoolAbilities;

  constructor(
    private readonly context: LauncherContext,
    readonly provider: Provider,
    readonly config: PoolConfig,
    private readonly concurrency: Concurrency,
    private readonly signal: AbortSignal,
  ) {
    const { name } = provider.config;
    this.id = `${context.hostname}-PoolWorker.${name}-${config.name}-${context.random.uuidHex()}`;
    this.log = context.log.with({ provider: name, pool: config.name });
    this.by = `${name}/${config.name}`;
    this.ledger = new QuotaLedger(config);
    this.labels = new PoolLabels(context, provider, config, signal, this.log, () => this.reconsiderAll());
    this.deferred = new DeferredRequests(context.clock, (id) => this.consider(id, context.store.requests.get(id)));
    this.shortage = new Shortage(context.clock, () => this.wake());
    this.assigning = this.makeAssigning();
    this.abilities = this.makeAbilities();
  }

  /** Resolves once the pool is registered and takes requests. */
  async start(): Promise<void> {
    const { store } = this.context;
    await this.labels.load();
    if (this.signal.aborted) return;
    const component = poolComponent(this.context, this.id, this.provider.config.name, this.config);
    this.registration = new PoolRegistration(this.context, component);
    await this.registration.registered(this.signal);
    this.unsubscribe = [
      store.nodes.onChange((change) => this.onNode(change)),
      store.requests.onChange((change) => this.onRequest(change)),
      store.components.onChange(() => this.reconsiderAll()),
      store.onComplete(() => this.reconsiderAll()),
      this.concurrency.onFree(() => this.wake()),
    ];
    for (const entry of store.nodes.ofProvider(this.provider.config.name)) this.count(entry.id, entry);
    this.reconsiderAll();
    this.log.info('Pool serves requests', { labels: [...this.config.labels.keys()], id: this.id });
  }

  /** Requests in the hands of this pool. */
  get requests(): number {
    return this.handlers.size;
  }

  /** Takes no more requests, lets go of those in progress and leaves the registry. */
  async stop(): Promise<void> {
    this.stopped = true;
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.shortage.end();
    this.deferred.stop();
    for (const handler of this.handlers.values()) handler?.stop();
    await this.registration?.close();
  }

  /** What it is doing, for the stack dump and for explanations. */
  activity(): PoolActivity {
    const { limit, used } = this.ledger.amounts;
    return {
      pool: this.config.name,
      id: this.id,
      waiting: this.waiting.size,
      next: this.waiting.first()?.id,
      accepting: this.accepting,
      deferred: this.deferred.size,
      outOfRoom: this.shortage.lasts,
      limit: limit.toResources(),
      used: used.toResources(),
      labels: [...this.config.labels.keys()].map((label) => ({ label, obstacle: this.obstacle([label]) })),
      requests: [...this.handlers.values()].flatMap((handler) => handler?.activity() ?? []),
    };
  }

  declined(request: NodeRequest): Partial<NodeRequestData> {
    return afterDecline(request, this.id, this.context.store.components);
  }

  outOfRoom(): void {
    this.shortage.begin();
  }

  labelFailed(label: string, reason: string): void {
    this.context.decisions.record('label', label, this.by, 'out of service: the cloud refuses it', reason);
    this.labels.failed(label, reason);
  }

  private onNode({ id, before, after }: Change<NodeEntry>): void {
    const node = (after ?? before)?.node;
    if (node?.provider !== this.provider.config.name) return;
    if (after === undefined) this.shortage.end();
    const freed = this.count(id, after);
    const available = after?.node.state === 'ready' && after.node.allocated_to === null && !after.locked;
    if (freed || available || after === undefined) this.wake();
  }

  private count(id: string, entry: NodeEntry | undefined): boolean {
    if (entry !== undefined && entry.node.pool !== this.config.name) return false;
    return this.ledger.record(id, entry);
  }

  private onRequest({ id, after }: Change<RequestEntry>): void {
    if (after === undefined) this.handlers.get(id)?.withdrawn();
    this.consider(id, after);
  }

  /** Everything that a decision depends on may have changed. */
  private reconsiderAll(): void {
    const { store } = this.context;
    if (!this.decides()) return;
    for (const state of ['requested', 'pending'] as const) {
      for (const entry of [...store.requests.inState(state)]) this.consider(entry.id, entry);
    }
  }

  /** Decisions are taken only while everything that they are based on is known completely. */
  private decides(): boolean {
    return !this.stopped && this.context.store.complete && this.context.store.components.complete;
  }

  private consider(id: string, entry: RequestEntry | undefined): void {
    const waited = this.waiting.remove(id);
    this.begun.delete(id);
    if (entry === undefined || entry.locked || this.handlers.has(id) || this.deferred.has(id)) return;
    if (!this.decides()) return;
    if (entry.request.state !== 'requested' && entry.request.state !== 'pending') return;
    const { components } = this.context.store;
    if (entry.request.state === 'pending' && belongsElsewhere(id, this.context.store, this.by)) return;
    const verdict = judge(entry.request, this.abilities, components);
    switch (verdict.kind) {
      case 'serve':
        // One that waits has been told what for.
        if (!waited) this.decided(id, 'can serve it');
        this.waiting.put(entry);
        if (this.abilities.hasBegun(id)) this.begun.set(id, entry);
        this.wake();
        return;
      case 'leave':
        this.decided(id, 'leaves it to others', verdict.reason);
        return;
      case 'decline':
        this.decline(entry, verdict.reason);
    }
  }

  private wake(): void {
    if (this.woken || this.stopped) return;
    this.woken = true;
    // After everything that came with the same packet, so that the order of service is that of all of it.
    queueMicrotask(() => {
      this.woken = false;
      this.serveWaiting();
    });
  }

  /** Their nodes take room whether or not anybody goes on with them: whoever waited for that room would wait for ever. */
  private serveBegun(): void {
    for (const entry of this.begun.values()) {
      if (!this.concurrency.available || this.accepting >= MAX_ACCEPTING || !this.decides()) return;
      if (judge(entry.request, this.abilities, this.context.store.components).kind === 'serve') this.take(entry);
      else this.consider(entry.id, entry);
    }
  }

  private serveWaiting(): void {
    let blocked = false;
    if (this.begun.size > 0) this.serveBegun();
    for (let entry = this.waiting.first(); entry !== undefined && this.decides(); entry = this.waiting.first()) {
      if (judge(entry.request, this.abilities, this.context.store.components).kind !== 'serve') {
        this.consider(entry.id, entry);
        continue;
      }
      if (this.accepting >= MAX_ACCEPTING) break;
      if (!this.concurrency.available) {
        this.decided(
          entry.id,
          'waits for its turn',
          'the provider works on as many requests as max-concurrency allows',
        );
        break;
      }
      const taken = this.take(entry);
      if (taken) continue;
      if (entry.request.requestor !== MIN_READY_REQUESTOR) {
        blocked = true;
        break;
      }
      this.waiting.remove(entry.id);
      this.decline(entry, 'there is no room, and nodes kept ready never wait for it');
    }
    this.registration?.blocked(blocked);
  }

  /** False when there is no room for the request. */
  private take(entry: RequestEntry): boolean {
    const handler = this.provider.getRequestHandler(this.config.name, requestInfo(entry.request));
    const assignment = assign(entry.request, this.assigning, handler);
    if (assignment === undefined) return false;
    const launches = assignment.parts.some((part) => part.kind === 'launch');
    if (launches && this.shortage.lasts) {
      this.decided(entry.id, 'waits for room', 'the cloud said a moment ago that it has none');
      return false;
    }
    const reservation = launches ? this.ledger.reserve(assignment.need) : { release: () => undefined };
    if (reservation === undefined) {
      this.decided(entry.id, 'waits for room', 'the limits of the pool are in use');
      return false;
    }
    this.waiting.remove(entry.id);
    this.begun.delete(entry.id);
    this.handlers.set(entry.id, undefined);
    this.concurrency.begin();
    this.context.tasks.run(
      `request ${entry.id}`,
      async () => {
        try {
          await (await this.accept(entry, assignment, handler, reservation))?.run();
        } catch (error) {
          this.deferred.add(entry.id);
          throw error;
        } finally {
          this.concurrency.end();
          this.finished(entry.id);
        }
      },
      this.about(entry),
    );
    return true;
  }

  /** Takes the request, and holds what it gets; undefined when somebody else was faster. */
  private async accept(
    entry: RequestEntry,
    assignment: Assignment,
    handler: NodeRequestHandler,
    reservation: Reservation,
  ): Promise<RequestHandler | undefined> {
    const claimed = assignment.parts.flatMap((part) => (part.kind === 'launch' ? [] : [part.entry.id]));
    for (const id of claimed) this.claimedNodes.add(id);
    this.accepting += 1;
    try {
      const accepted = await this.context.store.requests.accept(entry, {
        create: assignment.parts.flatMap((part) =>
          part.kind === 'launch' ? [this.plan(entry, assignment.zone, part)] : [],
        ),
        reuse: assignment.parts.flatMap((part) => (part.kind === 'ready' ? [part.entry] : [])),
      });
      // From here on, the records count.
      reservation.release();
      if (accepted === undefined) {
        // Behind the answer to a read, the cache knows what there is to know.
        await this.context.store.requests.read(entry.id);
        return undefined;
      }
      const work = this.handle(entry, accepted, assignment, handler);
      await work.lockNodes(accepted.created);
      return work;
    } finally {
      reservation.release();
      for (const id of claimed) this.claimedNodes.delete(id);
      this.accepting -= 1;
      this.wake();
    }
  }

  private handle(
    entry: RequestEntry,
    accepted: AcceptedRequest,
    assignment: Assignment,
    handler: NodeRequestHandler,
  ): RequestHandler {
    this.decided(entry.id, 'accepted', inWords(assignment));
    this.log.info('Accepted request', {
      node_request_id: entry.id,
      event_id: entry.request.event_id,
      labels: entry.request.node_types,
      launches: accepted.created.length,
    });
    const work = new RequestHandler(
      this.context,
      this,
      handler,
      accepted.request,
      slotsOf(assignment, accepted.reused),
    );
    this.handlers.set(entry.id, work);
    if (this.context.store.requests.get(entry.id) === undefined) work.withdrawn();
    if (this.stopped) work.stop();
    return work;
  }

  private plan({ request }: RequestEntry, zone: string | undefined, { label, upload }: Launch): NodeData {
    const { id: launcher, config: pool, labels } = this;
    const resources = labels.need(label.name).toResources();
    const provider = this.provider.config.name;
    return plannedNode(
      { provider, pool, label, launcher, request, resources, upload, az: zone },
      unixSeconds(this.context),
    );
  }

  private decline(entry: RequestEntry, reason: string): void {
    const { store, tasks } = this.context;
    this.handlers.set(entry.id, undefined);
    tasks.run(
      `decline request ${entry.id}`,
      async () => {
        try {
          const accepted = await store.requests.accept(entry, { create: [], reuse: [] });
          if (accepted === undefined) {
            await store.requests.read(entry.id);
            return;
          }
          const change = this.declined(accepted.request.request);
          this.decided(entry.id, change.state === 'failed' ? 'failed it: everybody has declined' : 'declined', reason);
          this.log.info(change.state === 'failed' ? 'Failed request' : 'Declined request', {
            node_request_id: entry.id,
            event_id: entry.request.event_id,
            labels: entry.request.node_types,
            reason,
          });
          await accepted.request.release(change);
        } catch (error) {
          this.deferred.add(entry.id);
          throw error;
        } finally {
          this.finished(entry.id);
        }
      },
      this.about(entry),
    );
  }

  /** The request, for the log. */
  private about({ id, request }: RequestEntry): LogFields {
    const { provider, config } = this;
    return { node_request_id: id, event_id: request.event_id, provider: provider.config.name, pool: config.name };
  }

  private decided(requestId: string, what: string, reason?: string): void {
    this.context.decisions.record('request', requestId, this.by, what, reason);
  }

  private finished(requestId: string): void {
    this.handlers.delete(requestId);
    this.consider(requestId, this.context.store.requests.get(requestId));
    this.wake();
  }

  private makeAssigning(): AssigningPool {
    const { store } = this.context;
    const providerName = this.provider.config.name;
    return {
      providerName,
      poolName: this.config.name,
      nodes: store.nodes,
      label: (name) => this.labels.label(name),
      need: (label) => this.labels.need(label),
      upload: (label) => this.labels.upload(label),
      claimed: (nodeId) => this.claimedNodes.has(nodeId),
      chooseZone: () => this.labels.chooseZone(),
    };
  }

  private makeAbilities(): PoolAbilities {
    return {
      id: this.id,
      providerName: this.provider.config.name,
      priority: this.config.priority,
      disabled: this.config.maxServers <= 0,
      hasLabel: (label) => this.config.labels.has(label),
      hasBegun: (requestId) => {
        const { provider, pool } = this.context.store.nodes.allocatedTo(requestId)[0]?.node ?? {};
        return provider === this.provider.config.name && pool === this.config.name;
      },
      obstacle: (labels) => this.obstacle(labels),
    };
  }

  /** Why the labels cannot be served together, now or ever. */
  private obstacle(labels: readonly string[]): string | undefined {
    const obstacle = this.labels.obstacle(labels);
    if (obstacle !== undefined) return obstacle;
    const need = labels.map((label) => this.labels.need(label)).reduce((sum, each) => sum.add(each));
    return this.ledger.couldEverFit(need) ? undefined : 'the request is larger than the limits of the pool';
  }
}
