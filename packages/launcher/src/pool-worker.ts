/**
 * Serves one pool of a provider: decides about every request that the pool could serve, in the order of service, as
 * soon as something changes that the decision depends on.
 */

import {
  MIN_READY_REQUESTOR,
  type AcceptedRequest,
  type Change,
  type ImageUpload,
  type LabelConfig,
  type Logger,
  type NodeData,
  type NodeEntry,
  type NodeHandle,
  type NodeRequest,
  type NodeRequestData,
  type NodeRequestHandler,
  type PoolConfig,
  type Provider,
  type RequestEntry,
  type Timer,
} from '@nodepool/core';
import { assign, type AssigningPool, type Assignment } from './assignment.js';
import type { Concurrency } from './concurrency.js';
import type { LauncherContext } from './context.js';
import { unixSeconds } from './context.js';
import { plannedNode } from './node-record.js';
import { QuotaLedger, type Reservation } from './quota-ledger.js';
import { RequestHandler, requestInfo, type HandlerPool, type Slot } from './request-handler.js';
import { PoolLabels } from './pool-labels.js';
import { PoolRegistration } from './pool-registration.js';
import { afterDecline, judge, type PoolAbilities } from './suitability.js';
import { WaitingRequests } from './waiting-requests.js';

/** After the cloud said that there is no room, nothing is launched for so long, unless a node of ours goes before. */
const OUT_OF_ROOM_MS = 10_000;
/** After an error that says nothing about when to try again, a request is left alone for so long. */
const DEFER_MS = 10_000;
/** Requests whose records are being written at a time: enough to keep ZooKeeper busy, few enough to leave others a turn. */
const MAX_ACCEPTING = 32;

export class PoolWorker implements HandlerPool {
  /** What goes into `declined_by`. */
  readonly id: string;
  private readonly waiting = new WaitingRequests();
  private readonly handlers = new Map<string, RequestHandler | undefined>();
  private readonly claimedNodes = new Set<string>();
  private readonly ledger: QuotaLedger;
  private readonly labels: PoolLabels;
  private readonly log: Logger;
  private registration: PoolRegistration | undefined;
  private unsubscribe: (() => void)[] = [];
  private accepting = 0;
  /** Requests that could not be dealt with, until they are looked at again. */
  private readonly deferred = new Map<string, Timer>();
  private woken = false;
  private stopped = false;
  private outOfRoomTimer: Timer | undefined;
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
    this.ledger = new QuotaLedger(config);
    this.labels = new PoolLabels(context, provider, config, signal, this.log, () => this.reconsiderAll());
    this.assigning = this.makeAssigning();
    this.abilities = this.makeAbilities();
  }

  /** Resolves once the pool is registered and takes requests. */
  async start(): Promise<void> {
    const { store, hostname, version } = this.context;
    await this.labels.load();
    if (this.signal.aborted) return;
    this.registration = new PoolRegistration(this.context, {
      hostname,
      kind: 'pool',
      state: 'running',
      version,
      model_api: 0,
      id: this.id,
      name: this.config.name,
      provider_name: this.provider.config.name,
      supported_labels: [...this.config.labels.keys()],
      priority: this.config.priority,
      paused: false,
    });
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
    this.outOfRoomTimer?.cancel();
    for (const timer of this.deferred.values()) timer.cancel();
    for (const handler of this.handlers.values()) handler?.stop();
    await this.registration?.close();
  }

  declined(request: NodeRequest): Partial<NodeRequestData> {
    return afterDecline(request, this.id, this.context.store.components);
  }

  outOfRoom(): void {
    this.outOfRoomTimer?.cancel();
    this.outOfRoomTimer = this.context.clock.schedule(OUT_OF_ROOM_MS, () => {
      this.clearOutOfRoom();
      this.wake();
    });
  }

  labelFailed(label: string, reason: string): void {
    this.labels.failed(label, reason);
  }

  private clearOutOfRoom(): void {
    this.outOfRoomTimer?.cancel();
    this.outOfRoomTimer = undefined;
  }

  private onNode({ id, before, after }: Change<NodeEntry>): void {
    const node = (after ?? before)?.node;
    if (node?.provider !== this.provider.config.name) return;
    if (after === undefined) this.clearOutOfRoom();
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
    this.waiting.remove(id);
    if (entry === undefined || entry.locked || this.handlers.has(id) || this.deferred.has(id)) return;
    if (!this.decides()) return;
    if (entry.request.state !== 'requested' && entry.request.state !== 'pending') return;
    const { components } = this.context.store;
    if (entry.request.state === 'pending' && this.belongsElsewhere(entry)) return;
    const verdict = judge(entry.request, this.abilities, components);
    switch (verdict.kind) {
      case 'serve':
        this.waiting.put(entry);
        this.wake();
        return;
      case 'leave':
        return;
      case 'decline':
        this.decline(entry, verdict.reason);
    }
  }

  /** A lost request whose nodes are in another pool that is still served goes on there. */
  private belongsElsewhere({ id }: RequestEntry): boolean {
    const { nodes, components } = this.context.store;
    const of = nodes.allocatedTo(id)[0]?.node;
    if (of === undefined || (of.provider === this.provider.config.name && of.pool === this.config.name)) return false;
    for (const pool of components.pools()) {
      if (pool.provider_name === of.provider && pool.name === of.pool) return true;
    }
    return false;
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

  private serveWaiting(): void {
    let blocked = false;
    for (let entry = this.waiting.first(); entry !== undefined && this.decides(); entry = this.waiting.first()) {
      if (judge(entry.request, this.abilities, this.context.store.components).kind !== 'serve') {
        this.consider(entry.id, entry);
        continue;
      }
      if (!this.concurrency.available || this.accepting >= MAX_ACCEPTING) break;
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
    if (launches && this.outOfRoomTimer !== undefined) return false;
    const reservation = launches ? this.ledger.reserve(assignment.need) : { release: () => undefined };
    if (reservation === undefined) return false;
    this.waiting.remove(entry.id);
    this.handlers.set(entry.id, undefined);
    this.concurrency.begin();
    this.context.tasks.run(`request ${entry.id}`, async () => {
      try {
        await (await this.accept(entry, assignment, handler, reservation))?.run();
      } catch (error) {
        this.defer(entry.id);
        throw error;
      } finally {
        this.concurrency.end();
        this.finished(entry.id);
      }
    });
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
          part.kind === 'launch' ? [this.plan(entry, assignment, part)] : [],
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
    this.log.info('Accepted request', {
      node_request_id: entry.id,
      event_id: entry.request.event_id,
      labels: entry.request.node_types,
      launches: accepted.created.length,
    });
    const work = new RequestHandler(this.context, this, handler, accepted.request, slots(assignment, accepted.reused));
    this.handlers.set(entry.id, work);
    if (this.context.store.requests.get(entry.id) === undefined) work.withdrawn();
    if (this.stopped) work.stop();
    return work;
  }

  private plan(
    entry: RequestEntry,
    assignment: Assignment,
    part: { label: LabelConfig; upload: ImageUpload | undefined },
  ): NodeData {
    return plannedNode(
      {
        provider: this.provider.config.name,
        pool: this.config,
        label: part.label,
        launcher: this.id,
        request: entry.request,
        resources: this.labels.need(part.label.name).toResources(),
        upload: part.upload,
        az: assignment.zone,
      },
      unixSeconds(this.context),
    );
  }

  private decline(entry: RequestEntry, reason: string): void {
    const { store, tasks } = this.context;
    this.handlers.set(entry.id, undefined);
    tasks.run(`decline request ${entry.id}`, async () => {
      try {
        const accepted = await store.requests.accept(entry, { create: [], reuse: [] });
        if (accepted === undefined) {
          await store.requests.read(entry.id);
          return;
        }
        const change = this.declined(accepted.request.request);
        this.log.info(change.state === 'failed' ? 'Failed request' : 'Declined request', {
          node_request_id: entry.id,
          event_id: entry.request.event_id,
          labels: entry.request.node_types,
          reason,
        });
        await accepted.request.release(change);
      } catch (error) {
        this.defer(entry.id);
        throw error;
      } finally {
        this.finished(entry.id);
      }
    });
  }

  /** What failed would fail again at once. */
  private defer(requestId: string): void {
    if (this.stopped) return;
    const timer = this.context.clock.schedule(DEFER_MS, () => {
      this.deferred.delete(requestId);
      this.consider(requestId, this.context.store.requests.get(requestId));
    });
    this.deferred.set(requestId, timer);
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

/** The places of the request, those with a ready node filled. */
function slots(assignment: Assignment, reused: readonly NodeHandle[]): Slot[] {
  const ready = reused[Symbol.iterator]();
  return assignment.parts.map((part) => ({
    label: part.label,
    upload: part.kind === 'ready' ? undefined : part.upload,
    resume: part.kind === 'resume' ? part.entry : undefined,
    node: part.kind === 'ready' ? ready.next().value : undefined,
    launch: part.kind !== 'ready',
  }));
}
