/**
 * Serves the requests that a pool is offered, in the order of service, and what happens to those for which there is no room.
 *
 * - Room that becomes free in the scopes (pool, provider, tenant) that are too full for a request is reserved for it.
 *   Requests of a worse priority never take it. Requests of scopes that are not too full for it go on.
 * - Among requests of equal priority, those that fit may go first for the backfill window, counted from the creation of
 *   the one that does not, so that a pool stays busy (EASY backfill). From then on, later ones leave the room alone, too.
 *   So it is served at the latest when the nodes that were there at that time, and those of requests that come before it,
 *   have been given back.
 * - Its age is counted from its own `created_time`, so that every launcher that serves the pool reserves room for the same
 *   requests. All pools that could serve it reserve room: which will have enough first is unknown.
 * - Nodes to be kept ready do not displace anything: they leave alone what any request waits for, however young.
 */

import { MIN_READY_REQUESTOR, priorityOf, toDriverError, type NodeRequest } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import { Acceptances, type Decided } from '../requests/acceptances.js';
import { assign, type AssigningPool, type Assignment } from '../requests/assignment.js';
import type { Concurrency } from './concurrency.js';
import { RoomMaker } from './make-room.js';
import { compareClasses, type RequestClass } from './open-requests.js';
import type { Pool } from '../provider/pool.js';
import type { ProviderLimits } from '../quota/provider-limits.js';
import { lackInWords, needIn, precedes, type Lack, type QuotaScope, type Wish } from '../quota/quota-scope.js';
import { requestInfo, type HandlerPool } from '../requests/request-handler.js';
import type { RequestScheduler, ScheduledPool } from './request-scheduler.js';
import { Shortage } from './shortage.js';
import type { Verdict } from '../requests/suitability.js';

/** The facts beside the limits that the order of service depends on. */
export interface Situation {
  /** Decides whether the pool serves the request; undefined: it is not the pool's business. */
  judge(entry: RequestEntry): Verdict | undefined;
  /** Called with whether requests wait for room that another pool may have. */
  blocked(blocked: boolean): void;
}

/** A class of requests that waits here. */
interface Waiting {
  /** Every scope that was too full for it once. */
  readonly scopes: Set<QuotaScope>;
  /** Scopes in which room is reserved for it. */
  readonly reserved: Set<QuotaScope>;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Ready nodes of the pool that its first request needs. */
  nodes: readonly string[];
  /** Instances in use in its scopes when that was last looked at. */
  used: ReadonlyMap<QuotaScope, number>;
  /** It waits for something that another pool may have. */
  blocking: boolean;
}

export class PoolScheduler implements ScheduledPool {
  readonly acceptances: Acceptances;
  readonly shortage: Shortage;
  private readonly waiting = new Map<RequestClass, Waiting>();
  /** Those of `waiting` that wait for their turn. */
  private readonly inLine = new Set<RequestClass>();
  /** Ready nodes that a class needs for which room is reserved. */
  private readonly spared = new Map<string, RequestClass>();
  private readonly roomMaker: RoomMaker;
  private readonly assigning: AssigningPool;
  /** Always the same function: the pool is known by it in lines. */
  readonly wake = (): void => this.scheduler.offer(this.waiting.keys(), this);

  constructor(
    private readonly pool: Pool,
    handlerPool: HandlerPool,
    private readonly scheduler: RequestScheduler,
    private readonly concurrency: Concurrency,
    private readonly limits: ProviderLimits,
    private readonly situation: Situation,
  ) {
    const { context, ledger, by } = pool;
    this.acceptances = new Acceptances(pool, handlerPool, concurrency, {
      progressed: (requestId) => scheduler.written(requestId),
      finished: (requestId, delayMs) => scheduler.finished(requestId, delayMs),
    });
    this.shortage = new Shortage(context.clock, this.wake);
    this.roomMaker = new RoomMaker(context, ledger, by, this.wake);
    this.assigning = this.makeAssigning();
  }

  /** Requests that wait here. */
  get size(): number {
    let size = 0;
    for (const { entries } of this.waiting.keys()) size += entries.length;
    return size;
  }

  /** The first of them. */
  get next(): RequestEntry | undefined {
    const [first] = [...this.waiting.keys()].sort(compareClasses);
    return first?.first;
  }

  hasLabels(labels: readonly string[]): boolean {
    return labels.every((label) => this.pool.config.labels.has(label));
  }

  hasDeclined({ declined_by: declinedBy }: NodeRequest): boolean {
    return declinedBy.includes(this.pool.id);
  }

  withdrawn(requestId: string): void {
    this.acceptances.withdrawn(requestId);
  }

  /** Offers everything to the pool again: it may decide otherwise now. */
  reconsider(): void {
    this.scheduler.offerAllTo(this);
  }

  /** Serves no requests any more, and abandons those in progress. Resolves once they have been released. */
  async stop(): Promise<void> {
    this.scheduler.remove(this);
    this.shortage.end();
    this.roomMaker.stop();
    this.concurrency.leave(this.wake);
    for (const of of [...this.waiting.keys()]) this.forget(of);
    await this.acceptances.stop();
  }

  firstChanged(of: RequestClass): void {
    const waiting = this.waiting.get(of);
    if (waiting === undefined) return;
    if (of.first === undefined) this.forget(of);
    // Capacity reserved for the first one may be free for requests that come before the next one.
    else for (const scope of waiting.reserved) scope.changed();
  }

  settled(): void {
    if (this.inLine.size === 0) this.concurrency.leave(this.wake);
    this.situation.blocked([...this.waiting.values()].some(({ blocking }) => blocking));
  }

  offer(of: RequestClass, entry: RequestEntry): boolean {
    const verdict = this.situation.judge(entry);
    if (verdict?.kind !== 'serve') {
      this.forget(of);
      if (verdict?.kind === 'decline') return this.decline(entry, verdict.reason);
      if (verdict !== undefined) {
        this.pool.decided(entry.id, verdict.kind === 'wait' ? 'waits' : 'leaves it to others', verdict.reason);
      }
      return false;
    }
    if (this.isHopeless(of, entry)) return false;
    if (!this.waiting.has(of)) this.pool.decided(entry.id, 'can serve it');
    return this.attempt(of, entry);
  }

  private attempt(of: RequestClass, entry: RequestEntry): boolean {
    const { pool, concurrency } = this;
    const planned = this.plan(entry);
    if (planned === undefined) return true;
    const { handler, assignment } = planned;
    const scopes = pool.ledger.scopesOf(pool.place, entry.request.tenant_name);
    const [needsRoom] = assignment.tenantNeed.entries();
    if (needsRoom !== undefined) {
      const lacks = this.lacks(of, entry, assignment, scopes);
      if (lacks !== undefined) return this.wait(of, entry, assignment, scopes, lacks);
    }
    if (!concurrency.isAvailable(this.wake, priorityOf(entry.id))) {
      this.waitingOf(of);
      this.inLine.add(of);
      concurrency.wait(this.wake, priorityOf(entry.id));
      pool.decided(entry.id, 'waits for its turn', 'the provider works on as many requests as max-concurrency allows');
      return false;
    }
    const reservation = needsRoom !== undefined ? pool.ledger.reserve(scopes, assignment) : undefined;
    this.forget(of);
    concurrency.begin(this.wake);
    // Those that wait for their turn get in line again.
    if (this.inLine.size > 0) this.scheduler.offer(this.inLine, this);
    this.scheduler.taken(entry.id, this);
    this.acceptances.serve({ entry, assignment, handler, reservation });
    return true;
  }

  /** Undefined: it cannot be served here, and was declined. */
  private plan(entry: RequestEntry): Pick<Decided, 'handler' | 'assignment'> | undefined {
    const { provider, config } = this.pool;
    let reason = 'the pool does not have its labels any more';
    try {
      const handler = provider.getRequestHandler(config.name, requestInfo(entry.request));
      const assignment = assign(entry.request, this.assigning, handler);
      if (assignment !== undefined) return { handler, assignment };
    } catch (error) {
      const failure = toDriverError(error);
      this.pool.log.error('The driver failed to say how it would serve a request', failure, {
        node_request_id: entry.id,
      });
      reason = `the driver failed: ${failure.message}`;
    }
    this.decline(entry, reason);
    return undefined;
  }

  private decline(entry: RequestEntry, reason: string): true {
    this.scheduler.taken(entry.id, this);
    this.acceptances.decline(entry, reason);
    return true;
  }

  /**
   * Returns true if nothing has changed for a class that waits: a limit leaves no place for a single node, neither is
   * there a ready one that could be used, or make room.
   */
  private isHopeless(of: RequestClass, { request }: RequestEntry): boolean {
    const waiting = this.waiting.get(of);
    if (of.begun || waiting === undefined) return false;
    const { pool } = this;
    const now = pool.context.clock.now();
    const full = pool.ledger
      .scopesOf(pool.place, request.tenant_name)
      .find(
        (scope) => scope.instances === waiting.used.get(scope) && scope.keeps(of, this) && scope.isFull(request, now),
      );
    if (full === undefined || full.free.get('instances') > 0) return false;
    const { provider, pool: name } = pool.place;
    const [label = ''] = request.node_types;
    const [ready] = request.reuse ? pool.context.store.nodes.available({ label, provider, pool: name }) : [];
    if (ready !== undefined) return false;
    full.wait(this.wake);
    return true;
  }

  /** Why there is no room; undefined: there is. None: the cloud said so. */
  private lacks(
    of: RequestClass,
    { request }: RequestEntry,
    assignment: Assignment,
    scopes: readonly QuotaScope[],
  ): readonly Lack[] | undefined {
    const { ledger, context } = this.pool;
    this.limits.needed();
    if (this.shortage.lasts && assignment.parts.some((part) => part.kind === 'launch')) return [];
    const { need, tenantNeed } = assignment;
    const lacks = ledger.lacks(scopes, { request, need, tenantNeed, now: context.clock.now(), of });
    return lacks.length === 0 ? undefined : lacks;
  }

  /** Returns true if the request was taken to be given back. */
  private wait(
    of: RequestClass,
    entry: RequestEntry,
    assignment: Assignment,
    scopes: readonly QuotaScope[],
    lacks: readonly Lack[],
  ): boolean {
    const reason = lacks.map(lackInWords).join('; ') || 'the cloud said a moment ago that it has none';
    if (lacks.length > 0 && of.begun) {
      this.forget(of);
      this.scheduler.taken(entry.id, this);
      this.acceptances.handBack({ entry, assignment }, reason);
      return true;
    }
    if (entry.request.requestor === MIN_READY_REQUESTOR) {
      this.forget(of);
      return this.decline(entry, `there is no room for nodes to be kept ready: ${reason}`);
    }
    this.pool.decided(entry.id, 'waits for room', reason);
    const { request } = entry;
    const own = new Set(assignment.parts.flatMap((part) => (part.kind === 'ready' ? [part.entry.id] : [])));
    const spared = (nodeId: string): boolean => own.has(nodeId) || this.isSpared(nodeId, request);
    const waiting = this.waitingOf(of);
    this.inLine.delete(of);
    if (lacks.length === 0) {
      waiting.blocking = true;
      const provider = scopes.find(({ kind }) => kind === 'provider') ?? scopes[0];
      if (provider !== undefined) this.roomMaker.makeSome(provider, request, spared);
      return false;
    }
    const { need, tenantNeed } = assignment;
    const wish: Wish = { request, need, tenantNeed, now: this.pool.context.clock.now(), of };
    waiting.blocking = lacks.some(({ scope }) => scope.kind !== 'tenant');
    waiting.used = new Map(scopes.map((scope) => [scope, scope.instances]));
    if (lacks.some(({ scope }) => scope.kind === 'provider')) this.limits.awaited();
    this.reserve(of, waiting, wish, scopes, lacks);
    this.roomMaker.makeRoom(wish, scopes, spared);
    this.spare(of, waiting, [...own]);
    return false;
  }

  private waitingOf(of: RequestClass): Waiting {
    let waiting = this.waiting.get(of);
    if (waiting === undefined) {
      waiting = {
        scopes: new Set(),
        reserved: new Set(),
        since: this.pool.context.clock.now(),
        nodes: [],
        used: new Map(),
        blocking: false,
      };
      this.waiting.set(of, waiting);
    }
    return waiting;
  }

  /** Reserves room in every scope that is too full, or was before, and in the others as soon as they are too full. */
  private reserve(
    of: RequestClass,
    { scopes: full, reserved, since }: Waiting,
    wish: Wish,
    scopes: readonly QuotaScope[],
    lacks: readonly Lack[],
  ): void {
    for (const { scope } of lacks) full.add(scope);
    const tenantLacks = lacks.some(({ scope }) => scope.kind === 'tenant');
    for (const scope of new Set([...scopes, ...reserved])) {
      // A request that waits for its tenant's limit leaves the other limits to others until then.
      if (tenantLacks && scope.kind !== 'tenant') {
        scope.forget(of, this);
        reserved.delete(scope);
        continue;
      }
      const onlyIfFull = !full.has(scope);
      const need = needIn(scope, wish);
      scope.keep({ of, need, from: () => this.reservedFrom(of, since), owner: this, onlyIfFull });
      reserved.add(scope);
    }
    for (const scope of full) scope.wait(this.wake);
  }

  private reservedFrom(of: RequestClass, since: number): number {
    const { context } = this.pool;
    const created = (of.request.created_time ?? Infinity) * 1000;
    return (created <= context.clock.now() ? created : since) + context.backfillWindowMs;
  }

  /** Spares these nodes for the class, and no others. */
  private spare(of: RequestClass, waiting: Waiting, nodes: readonly string[]): void {
    for (const nodeId of waiting.nodes) if (this.spared.get(nodeId) === of) this.spared.delete(nodeId);
    waiting.nodes = nodes;
    for (const nodeId of nodes) this.spared.set(nodeId, of);
  }

  private forget(of: RequestClass): void {
    const waiting = this.waiting.get(of);
    if (waiting === undefined) return;
    this.spare(of, waiting, []);
    this.waiting.delete(of);
    this.inLine.delete(of);
    for (const scope of waiting.reserved) scope.forget(of, this);
  }

  private isSpared(nodeId: string, request: NodeRequest): boolean {
    const of = this.spared.get(nodeId);
    const waiting = of === undefined ? undefined : this.waiting.get(of);
    if (of !== undefined && waiting !== undefined) {
      const from = this.reservedFrom(of, waiting.since);
      if (precedes({ request: of.request, from }, request, this.pool.context.clock.now())) return true;
    }
    return this.acceptances.claims(nodeId);
  }

  private makeAssigning(): AssigningPool {
    const { labels, context, place } = this.pool;
    return {
      providerName: place.provider,
      poolName: place.pool,
      nodes: context.store.nodes,
      label: (name) => labels.label(name),
      need: (label) => labels.need(label),
      upload: (label) => labels.upload(label),
      claimed: (nodeId, request) => this.isSpared(nodeId, request),
      chooseZone: (names) => labels.chooseZone(names),
      isUsable: (names, zone) => labels.isUsable(names, zone),
    };
  }
}
