/**
 * Records the lives of requests and nodes from the events that this launcher reports, and from changes of records for
 * the work of other launchers. An event costs O(1), or time per node of one request. The number of ended lives is
 * limited.
 */

import { Emitter, type Clock, type NodeRequest } from '@nodepool/core';
import type { Change, NodeEntry, RequestEntry, Store } from '@nodepool/store';
import type { Attempt, NodePhase, RequestEnd } from './life.js';
import { EndedLives } from './ended-lives.js';
import { NodeLife } from './node-life.js';
import { RequestLife } from './request-life.js';
import { lackOfPool } from '../facts/lack-of-pool.js';
import type {
  AttemptResult,
  LaunchPlace,
  LaunchStage,
  Refusal,
  RequestResult,
  TimelineRecorder,
  Wait,
} from '../facts/timeline-recorder.js';

/** Limit of the kept ended requests and nodes, besides failed requests. */
const MAX_ENDED = 5000;
const MAX_FAILED = 2000;

export interface TimelineOptions {
  readonly store: Pick<Store, 'requests' | 'nodes' | 'components' | 'onComplete' | 'zooKeeper'>;
  readonly clock: Clock;
  /** Called with the error of a listener that failed. */
  readonly onError: (error: unknown) => void;
  /**
   * Returns true if this launcher, and no other one, reports what the pool with this id has done with a node, or what
   * no pool has done (null). Default: this launcher reports everything.
   */
  readonly reports?: ((id: string, poolId: string | null) => boolean) | undefined;
}

/** Events for statistics. */
export interface TimelineEvents {
  readonly requestEnded: Emitter<RequestLife>;
  readonly nodeEnded: Emitter<NodeLife>;
  /** A phase of a node that this launcher reports has ended; it has taken `ms` milliseconds. */
  readonly nodePhase: Emitter<{ readonly life: NodeLife; readonly phase: NodePhase; readonly ms: number }>;
  readonly attempted: Emitter<{ readonly provider: string; readonly attempt: Attempt }>;
}

export class Timelines implements TimelineRecorder {
  readonly events: TimelineEvents;
  readonly endedRequests = new EndedLives<RequestLife>(MAX_ENDED);
  readonly failedRequests = new EndedLives<RequestLife>(MAX_FAILED);
  readonly endedNodes = new EndedLives<NodeLife>(MAX_ENDED);
  private readonly requests = new Map<string, RequestLife>();
  private readonly nodes = new Map<string, NodeLife>();
  /** Ended requests that a pool of this launcher has not released yet; its result is more exact than the record. */
  private readonly releasing = new Map<string, RequestLife>();
  /** The session in which the store was complete last. */
  private session: bigint | undefined;
  /** Lives that had not ended when an earlier process stopped, until their records are seen. */
  private readonly interrupted = { requests: new Map<string, RequestLife>(), nodes: new Map<string, NodeLife>() };
  private readonly store: TimelineOptions['store'];
  private readonly clock: Clock;
  private readonly reports: NonNullable<TimelineOptions['reports']>;
  private unsubscribe: (() => void)[] = [];

  constructor({ store, clock, onError, reports = () => true }: TimelineOptions) {
    this.store = store;
    this.clock = clock;
    this.reports = reports;
    this.events = {
      requestEnded: new Emitter(onError),
      nodeEnded: new Emitter(onError),
      nodePhase: new Emitter(onError),
      attempted: new Emitter(onError),
    };
  }

  /** Starts to watch the records. */
  start(): void {
    const { requests, nodes } = this.store;
    for (const after of requests.all()) this.requestChanged({ id: after.id, before: undefined, after });
    for (const after of nodes.all()) this.nodeChanged({ id: after.id, before: undefined, after });
    this.unsubscribe = [
      requests.onChange(this.requestChanged),
      nodes.onChange(this.nodeChanged),
      this.store.onComplete((complete) => {
        if (complete) this.session = this.store.zooKeeper.session?.id;
      }),
    ];
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.unsubscribe = [];
    for (const life of this.releasing.values()) this.events.requestEnded.emit(life);
    this.releasing.clear();
  }

  request(id: string): RequestLife | undefined {
    return this.requests.get(id) ?? this.failedRequests.get(id) ?? this.endedRequests.get(id);
  }

  node(id: string): NodeLife | undefined {
    return this.nodes.get(id) ?? this.endedNodes.get(id);
  }

  /** Returns the lives that have not ended, for the history of the next process. */
  open(): { readonly requests: Iterable<RequestLife>; readonly nodes: Iterable<NodeLife> } {
    return { requests: this.requests.values(), nodes: this.nodes.values() };
  }

  /** Adds a life that an earlier process recorded. Call it before `start`. */
  restore(life: RequestLife | NodeLife): void {
    if (life instanceof RequestLife) {
      this.interrupted.requests.delete(life.facts.id);
      if (life.end === undefined) this.interrupted.requests.set(life.facts.id, life);
      else this.keepRequest(life);
      return;
    }
    this.interrupted.nodes.delete(life.facts.id);
    if (life.end === undefined) this.interrupted.nodes.set(life.facts.id, life);
    else this.endedNodes.add(life.facts.id, life);
  }

  waits(requestId: string, pool: string, wait: Wait): void {
    this.requests.get(requestId)?.waits(this.clock.now(), pool, wait);
  }

  leaves(requestId: string, pool: string, refusal: Refusal): void {
    this.requests.get(requestId)?.leaves(this.clock.now(), pool, refusal);
  }

  accepting(requestId: string, pool: string): void {
    this.requests.get(requestId)?.accepting(this.clock.now(), pool);
  }

  taken(requestId: string, pool: string): void {
    this.current(requestId)?.taken(pool);
  }

  settled(requestId: string, result: RequestResult, nodes: readonly string[] = []): void {
    const life = this.current(requestId);
    if (life !== undefined) life.settled = { result, nodes };
  }

  released(requestId: string, pool: string): void {
    const life = this.current(requestId);
    if (life?.worker !== pool) return;
    life.released(this.clock.now(), pool);
    const { ended, settled, wasFree } = life;
    if (ended === undefined) return;
    this.releasing.delete(requestId);
    if (settled !== undefined && settled.result !== ended.result) life.ended = { ...ended, ...settled };
    else if (settled === undefined && ended.result === 'cancelled' && !wasFree)
      life.ended = { ...ended, result: 'unseen' };
    if (life.ended !== ended) this.keepRequest(life);
    this.reportRequest(life);
  }

  stage(nodeId: string, place: LaunchPlace, stage: LaunchStage, reason?: string): void {
    const life = this.nodes.get(nodeId);
    if (life === undefined) return;
    life.stage(this.clock.now(), poolOf(place), stage, reason);
    this.reportPhases(life);
    this.requestOf(life)?.nodeStage(this.clock.now(), nodeId, stage, reason);
  }

  attempted(nodeId: string, place: LaunchPlace, { number, offer, error }: AttemptResult): void {
    const { provider, label } = place;
    const attempt = { node: nodeId, number, pool: poolOf(place), label, offer, ended: this.clock.now(), error };
    const life = this.nodes.get(nodeId);
    if (life !== undefined) {
      life.attempted(attempt);
      this.requestOf(life)?.attempted(attempt);
    }
    this.events.attempted.emit({ provider, attempt });
  }

  private readonly requestChanged = ({ id, before, after, wasFree = false }: Change<RequestEntry>): void => {
    const now = this.clock.now();
    if (after === undefined) {
      if (before !== undefined) this.requestDeleted(before, now, wasFree);
      return;
    }
    const { request } = after;
    let life = this.requests.get(id);
    if (life === undefined) {
      // The record of an ended request remains until its requestor deletes it.
      const isOpen = request.state === 'requested' || request.state === 'pending';
      if (!isOpen && this.request(id) !== undefined) return;
      const unseen = RequestLife.of(request, now);
      life = continued(this.interrupted.requests, id, unseen);
      this.requests.set(id, life);
      if (!isOpen) life.endedEarlier(request, now);
      life.endedUnseen = !isOpen && life === unseen;
    }
    life.recorded(now, request, after.locked);
    if (request.state === 'fulfilled') {
      this.endRequest(id, now, { result: 'fulfilled', ...NO_REASON, nodes: request.nodes });
    }
    if (request.state === 'failed') {
      this.endRequest(id, now, { result: 'failed', ...this.refusalOf(life, request), nodes: [] });
    }
  };

  /**
   * Ends a request whose record was deleted in an open state. If another launcher held it, or if changes before the
   * deletion were not read, another launcher may have served or failed it.
   */
  private requestDeleted({ id, request }: RequestEntry, now: number, wasFree: boolean): void {
    const life = this.requests.get(id);
    if (life === undefined) return;
    const { settled, holder } = life;
    if (settled !== undefined) {
      const reason = settled.result === 'failed' ? this.refusalOf(life, request) : NO_REASON;
      this.endRequest(id, now, { ...settled, ...reason });
      return;
    }
    life.wasFree = wasFree;
    life.isReported = wasFree && this.reports(id, null);
    const result = wasFree || holder !== undefined ? 'cancelled' : 'unseen';
    this.endRequest(id, now, { result, ...NO_REASON, nodes: [] });
  }

  /** Returns the reason of a failed request: the refusals of the pools that have its labels. */
  private refusalOf({ facts: { labels }, refusals }: RequestLife, request: NodeRequest): Reason {
    const capable = [...this.store.components.pools()].filter(({ supported_labels: supported }) =>
      labels.every((label) => supported.includes(label)),
    );
    if (capable.length === 0) {
      return { cause: 'label', reason: lackOfPool(labels, [...this.store.components.pools()]) };
    }
    const found = new Map<string, Pick<Refusal, 'reason'> & Partial<Refusal>>();
    for (const { id, provider_name: provider, name, hostname } of capable) {
      const pool = `${provider}/${name}`;
      const own = refusals.get(pool);
      // Other launchers write their reasons into the record, without a cause.
      const reason = request.decline_reasons[id];
      if (own !== undefined) found.set(pool, own);
      else if (reason !== undefined) found.set(`${pool} of ${hostname}`, { reason });
    }
    if (found.size === 0) return NO_REASON;
    const causes = [...found.values()].flatMap(({ cause }) => cause ?? []);
    return {
      cause: causes.find((cause) => cause !== 'label' && cause !== 'order') ?? causes[0],
      reason: [...found].map(([pool, { reason }]) => `${pool}: ${reason}`).join('; '),
    };
  }

  private endRequest(id: string, now: number, ended: RequestEnd): void {
    const life = this.requests.get(id);
    if (life === undefined) return;
    this.requests.delete(id);
    life.finish(now, ended);
    this.keepRequest(life);
    for (const node of ended.nodes) {
      const handedOver = this.nodes.get(node);
      if (handedOver === undefined) continue;
      handedOver.handedOver(now, id);
      this.reportPhases(handedOver);
    }
    if (life.worker === undefined) this.reportRequest(life);
    else this.releasing.set(id, life);
  }

  private reportRequest(life: RequestLife): void {
    if (life.settled !== undefined) life.isReported = true;
    // An earlier process or another launcher has counted it; every restart would count it again.
    if (!life.endedUnseen) this.events.requestEnded.emit(life);
  }

  /** Returns the life of a request that has not ended, or that a pool of this launcher has not released yet. */
  private current(id: string): RequestLife | undefined {
    return this.requests.get(id) ?? this.releasing.get(id);
  }

  private keepRequest(life: RequestLife): void {
    const { id } = life.facts;
    const [kept, other] =
      life.ended?.result === 'failed'
        ? [this.failedRequests, this.endedRequests]
        : [this.endedRequests, this.failedRequests];
    other.remove(id);
    kept.add(id, life);
  }

  private readonly nodeChanged = ({ id, after }: Change<NodeEntry>): void => {
    const now = this.clock.now();
    let life = this.nodes.get(id);
    if (after === undefined) {
      if (life === undefined) return;
      this.nodes.delete(id);
      life.close(now);
      this.reportPhases(life);
      this.endedNodes.add(id, life);
      this.events.nodeEnded.emit(life);
      return;
    }
    const { node } = after;
    const { allocated_to: requestId } = node;
    const request = requestId === null ? undefined : this.requests.get(requestId);
    if (life === undefined) {
      life = continued(this.interrupted.nodes, id, NodeLife.of(node, now));
      this.nodes.set(id, life);
    }
    const pool = request?.worker ?? request?.pool;
    // The records of nodes are created with the acceptance, whose result is known later.
    const isOwn = pool === `${node.provider ?? ''}/${node.pool ?? ''}`;
    life.recorded(now, node, request !== undefined, isOwn ? pool : undefined);
    this.reportPhases(life);
  };

  private reportPhases(life: NodeLife): void {
    if (!life.hasClosed) return;
    // After the loss of the session, other launchers have reported the phases of its nodes, except launches by itself.
    const isBehind = this.session !== undefined && this.session !== this.store.zooKeeper.session?.id;
    if ((isBehind && !life.isLaunching) || !this.reports(life.facts.id, life.launcher)) life.skipClosed();
    for (let closed = life.takeClosed(); closed !== undefined; closed = life.takeClosed()) {
      this.events.nodePhase.emit({ life, phase: closed.phase, ms: closed.ms });
    }
  }

  private requestOf({ facts }: NodeLife): RequestLife | undefined {
    return facts.request === null ? undefined : this.requests.get(facts.request);
  }
}

type Reason = Pick<RequestEnd, 'cause' | 'reason'>;

const NO_REASON: Reason = { cause: undefined, reason: undefined };

function poolOf({ provider, pool }: LaunchPlace): string {
  return `${provider}/${pool}`;
}

/** Returns the life that an earlier process recorded for the same record, or else `life`. */
function continued<L extends RequestLife | NodeLife>(interrupted: Map<string, L>, id: string, life: L): L {
  const earlier = interrupted.get(id);
  interrupted.delete(id);
  // A wiped ZooKeeper assigns the same ids again, so the creation time must match.
  return earlier !== undefined && Math.abs(earlier.created - life.created) < 1000 ? earlier : life;
}
