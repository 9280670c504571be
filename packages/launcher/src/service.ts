/**
 * The order in which a pool serves the requests that wait, and what happens to those for which there is no room now.
 *
 * - Room that becomes free in the scopes (pool, provider, tenant) that are too full for a request is reserved for it.
 *   Requests of a worse priority never take it. Requests of scopes that are not too full for it go on.
 * - Among requests of equal priority, those that fit may go first for the backfill window, counted from the creation of
 *   the one that does not, so that a pool stays busy (EASY backfill). From then on, later ones leave the room alone, too.
 *   So it is served at the latest when the nodes that were there at that time, and those of requests that come before it,
 *   have been given back.
 * - Its age is counted from its own `created_time`, so that every launcher that serves the pool keeps room for the same
 *   requests. All pools that could serve it keep room, for nobody knows which will have enough first.
 * - Nodes to be kept ready do not displace anybody: they leave alone what any request waits for, however young.
 */

import { MIN_READY_REQUESTOR, toDriverError, type NodeRequest, type RequestEntry } from '@nodepool/core';
import { Acceptances, type AcceptanceListener, type Decided } from './acceptances.js';
import { assign, type AssigningPool, type Assignment } from './assignment.js';
import type { Concurrency } from './concurrency.js';
import { RoomMaker } from './make-room.js';
import type { Pool } from './pool.js';
import type { ProviderLimits } from './provider-limits.js';
import { lackInWords, needIn, precedes, type KeptRoom, type Lack, type QuotaScope, type Wish } from './quota-scope.js';
import { requestInfo, type HandlerPool } from './request-handler.js';
import { Shortage } from './shortage.js';
import { WaitingRequests, type Alike } from './waiting-requests.js';

/** What the order of service depends on besides. */
export interface ServiceSituation {
  /** Whether all is known that decisions are based on. */
  decides(): boolean;
  /** False when the request is not to be served (any more); it has been dealt with then. */
  stillServes(entry: RequestEntry): boolean;
  /** To be told whether requests wait for room that another pool may have. */
  blocked(blocked: boolean): void;
}

/** Where room is kept for a request, and from when on (milliseconds since the epoch). */
interface Keeping {
  readonly scopes: Set<QuotaScope>;
  readonly from: number;
}

/** What one look at everybody who waits has come to. */
interface Pass {
  readonly passedOver: Set<Alike>;
  /** Requests for which there is no room. */
  readonly short: Set<string>;
  blocked: boolean;
}

export class Service {
  readonly acceptances: Acceptances;
  readonly shortage: Shortage;
  private readonly waiting = new WaitingRequests();
  /** Those that have nodes here already, lost by their launcher: they do not wait behind others. */
  private readonly begun = new WaitingRequests();
  /** Where room is kept, by request: every scope that was too full for it once. */
  private readonly keeping = new Map<string, Keeping>();
  private readonly roomMaker: RoomMaker;
  private readonly assigning: AssigningPool;
  /** Ready nodes that a request needs for which room is kept, with that request. */
  private spared = new Map<string, Pick<KeptRoom, 'request' | 'from'>>();
  private woken = false;
  private stopped = false;
  /** Always the same function: by it, others know who waits. */
  readonly wake = (): void => {
    if (this.woken || this.stopped) return;
    this.woken = true;
    // After everything that came with the same packet, so that the order of service is that of all of it.
    queueMicrotask(() => {
      this.woken = false;
      this.serve();
    });
  };

  constructor(
    private readonly pool: Pool,
    handlerPool: HandlerPool,
    private readonly concurrency: Concurrency,
    private readonly limits: ProviderLimits,
    private readonly situation: ServiceSituation,
    onFinished: AcceptanceListener['finished'],
  ) {
    const { context, ledger, by } = pool;
    this.acceptances = new Acceptances(pool, handlerPool, concurrency, {
      progressed: this.wake,
      finished: (requestId, failed) => {
        onFinished(requestId, failed);
        this.wake();
      },
    });
    this.shortage = new Shortage(context.clock, this.wake);
    this.roomMaker = new RoomMaker(context, ledger, by, this.wake);
    this.assigning = this.makeAssigning();
  }

  /** Requests that wait. */
  get size(): number {
    return this.waiting.size + this.begun.size;
  }

  /** The request that is served next. */
  get next(): RequestEntry | undefined {
    return this.begun.first() ?? this.waiting.first();
  }

  put(entry: RequestEntry, hasBegun: boolean): void {
    (hasBegun ? this.begun : this.waiting).put(entry);
    this.wake();
  }

  /** False when it did not wait. */
  remove(requestId: string): boolean {
    // What was kept for it is for others, unless it comes back at once.
    if (this.keeping.has(requestId)) this.wake();
    return [this.waiting.remove(requestId), this.begun.remove(requestId)].includes(true);
  }

  /** Serves nobody any more, and lets go of everything. */
  stop(): void {
    this.stopped = true;
    this.shortage.end();
    this.roomMaker.stop();
    this.concurrency.leave(this.wake);
    for (const requestId of [...this.keeping.keys()]) this.stopKeeping(requestId);
    this.acceptances.stop();
  }

  private serve(): void {
    if (this.stopped) return;
    const pass: Pass = { passedOver: new Set(), short: new Set(), blocked: false };
    this.spared.clear();
    const complete = this.serveAll(pass);
    for (const requestId of [...this.keeping.keys()]) {
      const isShort = complete ? pass.short.has(requestId) : this.waiting.has(requestId);
      if (!isShort) this.stopKeeping(requestId);
    }
    if (complete) this.concurrency.leave(this.wake);
    this.situation.blocked(pass.blocked);
  }

  /** False when it had to stop before everybody had been looked at. */
  private serveAll(pass: Pass): boolean {
    while (this.situation.decides()) {
      const entry = this.begun.first(pass.passedOver) ?? this.waiting.first(pass.passedOver);
      if (entry === undefined) return true;
      if (!this.situation.stillServes(entry)) continue;
      if (this.acceptances.isBusy || !this.attempt(entry, pass)) return false;
    }
    return false;
  }

  /** False when nobody else can be served either. */
  private attempt(entry: RequestEntry, pass: Pass): boolean {
    const { pool, concurrency } = this;
    const planned = this.plan(entry);
    if (planned === undefined) return true;
    const { handler, assignment } = planned;
    const scopes = pool.ledger.scopesOf(pool.place, entry.request.tenant_name);
    const [needsRoom] = assignment.tenantNeed.entries();
    if (needsRoom !== undefined && !this.hasRoom(entry, assignment, scopes, pass)) return true;
    if (!concurrency.isAvailable(this.wake)) {
      concurrency.wait(this.wake);
      const reason = 'the provider works on as many requests as max-concurrency allows';
      pool.decided(entry.id, 'waits for its turn', reason);
      return false;
    }
    const reservation = needsRoom !== undefined ? pool.ledger.reserve(scopes, assignment) : undefined;
    this.remove(entry.id);
    this.stopKeeping(entry.id);
    concurrency.begin(this.wake);
    this.acceptances.serve({ entry, assignment, handler, reservation });
    return true;
  }

  /** Undefined when it cannot be served here: it was declined. */
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
    this.remove(entry.id);
    this.acceptances.decline(entry, reason);
    return undefined;
  }

  private hasRoom(entry: RequestEntry, assignment: Assignment, scopes: readonly QuotaScope[], pass: Pass): boolean {
    const { ledger, context } = this.pool;
    this.limits.needed();
    const { need, tenantNeed } = assignment;
    const wish: Wish = { request: entry.request, need, tenantNeed, now: context.clock.now() };
    const isShort = this.shortage.lasts && assignment.parts.some((part) => part.kind === 'launch');
    const lacks = isShort ? [] : ledger.lacks(scopes, wish);
    if (!isShort && lacks.length === 0) return true;
    const reason = lacks.map(lackInWords).join('; ') || 'the cloud said a moment ago that it has none';
    const own = new Set(assignment.parts.flatMap((part) => (part.kind === 'ready' ? [part.entry.id] : [])));
    const spared = (nodeId: string): boolean => own.has(nodeId) || this.isSpared(nodeId, entry.request);
    if (lacks.length > 0 && this.begun.has(entry.id)) {
      this.remove(entry.id);
      this.acceptances.handBack({ entry, assignment }, reason);
    } else if (entry.request.requestor === MIN_READY_REQUESTOR) {
      this.remove(entry.id);
      this.acceptances.decline(entry, `there is no room for nodes to be kept ready: ${reason}`);
    } else if (lacks.length === 0) {
      this.passOver(entry, pass, reason);
      pass.blocked = true;
      const provider = scopes.find(({ kind }) => kind === 'provider') ?? scopes[0];
      if (provider !== undefined) this.roomMaker.makeSome(provider, entry.request, spared);
    } else {
      this.passOver(entry, pass, reason);
      pass.short.add(entry.id);
      if (lacks.some(({ scope }) => scope.kind !== 'tenant')) pass.blocked = true;
      if (lacks.some(({ scope }) => scope.kind === 'provider')) this.limits.awaited();
      const from = this.keepRoom(wish, lacks);
      this.roomMaker.makeRoom(wish, scopes, spared);
      for (const nodeId of own) this.spared.set(nodeId, { request: entry.request, from });
    }
    return false;
  }

  /** Others who want the same need not be looked at. */
  private passOver(entry: RequestEntry, pass: Pass, reason: string): void {
    pass.passedOver.add((this.begun.has(entry.id) ? this.begun : this.waiting).alike(entry));
    this.pool.decided(entry.id, 'waits for room', reason);
  }

  /** Keeps room in every scope that is too full, or was before. Returns from when on, milliseconds since the epoch. */
  private keepRoom(wish: Wish, lacks: readonly Lack[]): number {
    const { request, now } = wish;
    let keeping = this.keeping.get(request.id);
    if (keeping === undefined) {
      const created = (request.created_time ?? Infinity) * 1000;
      keeping = { scopes: new Set(), from: Math.min(created, now) + this.pool.context.backfillWindowMs };
      this.keeping.set(request.id, keeping);
    }
    const { scopes, from } = keeping;
    for (const { scope } of lacks) scopes.add(scope);
    const tenantLacks = lacks.some(({ scope }) => scope.kind === 'tenant');
    for (const scope of scopes) {
      // What its tenant must wait for anyway is of use to others until then.
      if (tenantLacks && scope.kind !== 'tenant') scope.forget(request.id, this);
      else scope.keep({ request, need: needIn(scope, wish), from, owner: this });
      scope.wait(this.wake);
    }
    return from;
  }

  private stopKeeping(requestId: string): void {
    const keeping = this.keeping.get(requestId);
    this.keeping.delete(requestId);
    for (const scope of keeping?.scopes ?? []) scope.forget(requestId, this);
  }

  private isSpared(nodeId: string, request: NodeRequest): boolean {
    const spared = this.spared.get(nodeId);
    const isPromised = spared !== undefined && precedes(spared, request, this.pool.context.clock.now());
    return isPromised || this.acceptances.claims(nodeId);
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
