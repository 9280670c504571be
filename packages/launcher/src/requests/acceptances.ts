/** Takes requests into the hands of a pool: those that are served, and those that are only to be given another state. */

import { LostOwnershipError, RequestGoneError, type AcceptedRequest, type RequestEntry } from '@nodepool/store';
import type { LogFields, NodeData, NodeRequest, NodeRequestHandler } from '@nodepool/core';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { type Assignment, type Part, inWords } from './assignment.js';
import type { Concurrency } from '../scheduling/concurrency.js';
import { unixSeconds } from '../context.js';
import { plannedNode } from '../launch/node-record.js';
import type { RequestActivity } from '../diagnostics/activity.js';
import type { Pool } from '../provider/pool.js';
import type { Reservation } from '../quota/quota-ledger.js';
import { RequestHandler, slotsOf, type HandlerPool } from './request-handler.js';

/** A part of an assignment for which a node is made. */
type Launch = Extract<Part, { readonly kind: 'launch' }>;

/** After an error that says nothing about when to try again, a request is left alone for this time, milliseconds. */
const FAILED_DELAY_MS = 10_000;
/** Limits the time for which a request is left alone after its hand-over was refused, milliseconds: many round trips. */
const MAX_COLLISION_DELAY_MS = 2000;

/** A request that is about to be served. */
export interface Decided {
  readonly entry: RequestEntry;
  readonly assignment: Assignment;
  readonly handler: NodeRequestHandler;
  /** Room for what is launched, until its records are made. */
  readonly reservation: Reservation | undefined;
}

/** What becomes of requests in the hands of a pool. */
export interface AcceptanceListener {
  /** The request's records have been written, or could not be. */
  progressed(requestId: string): void;
  /** Nothing is held of the request any more. `delayMs`: what failed would fail again before that. */
  finished(requestId: string, delayMs: number): void;
}

export class Acceptances {
  private readonly handlers = new Map<string, RequestHandler | undefined>();
  /** Ready nodes that are being taken. */
  private readonly claimed = new Set<string>();
  private writing = 0;
  private stopped = false;
  /** Called when the last request has been released. */
  private onIdle: (() => void) | undefined;

  constructor(
    private readonly pool: Pool,
    private readonly handlerPool: HandlerPool,
    private readonly concurrency: Concurrency,
    private readonly listener: AcceptanceListener,
  ) {}

  /** Requests in the hands of the pool. */
  get size(): number {
    return this.handlers.size;
  }

  /** Requests whose records are being written. */
  get accepting(): number {
    return this.writing;
  }

  has(requestId: string): boolean {
    return this.handlers.has(requestId);
  }

  /** Whether a ready node has been promised to a request in this moment. */
  claims(nodeId: string): boolean {
    return this.claimed.has(nodeId);
  }

  activity(): RequestActivity[] {
    return [...this.handlers.values()].flatMap((handler) => handler?.activity() ?? []);
  }

  /** The requestor has deleted the request. */
  withdrawn(requestId: string): void {
    this.handlers.get(requestId)?.withdrawn();
  }

  /** Abandons everything. Resolves once every request has been released, those included whose records are being written. */
  async stop(): Promise<void> {
    this.stopped = true;
    for (const handler of this.handlers.values()) handler?.stop();
    if (this.handlers.size > 0) await new Promise<void>((resolve) => (this.onIdle = resolve));
  }

  /** Serves the request, to the end. */
  serve(decided: Decided): void {
    const { entry, reservation } = decided;
    this.inHand(`request ${entry.id}`, entry, async () => {
      try {
        await (await this.accept(decided))?.run();
      } finally {
        reservation?.release();
        this.concurrency.end();
      }
    });
  }

  /** Declines the request for the pool. */
  decline(entry: RequestEntry, reason: string): void {
    this.inHand(`decline request ${entry.id}`, entry, async () => {
      const accepted = await this.take(entry);
      if (accepted === undefined) return;
      const change = this.handlerPool.declined(accepted.request.request);
      const failed = change.state === 'failed';
      this.pool.decided(entry.id, failed ? 'failed it: everybody has declined' : 'declined', reason);
      this.pool.log.info(failed ? 'Failed request' : 'Declined request', { ...this.about(entry), reason });
      await this.orWithdrawn(entry, () => accepted.request.release(change));
    });
  }

  /**
   * Gives a lost request back that has nodes here and needs more for which there is no room. Nobody holds nodes while
   * waiting for others: two that did could wait for each other for ever. Ready nodes become free, launches are given up.
   */
  handBack({ entry, assignment }: Pick<Decided, 'entry' | 'assignment'>, reason: string): void {
    this.inHand(`hand back request ${entry.id}`, entry, async () => {
      const own = assignment.parts.filter((part) => part.kind === 'ready' && part.entry.node.allocated_to === entry.id);
      const accepted = await this.take(entry, { ...assignment, parts: own });
      if (accepted === undefined) return;
      this.pool.decided(entry.id, 'gave its nodes back, to wait for room for all of them', reason);
      this.pool.log.info('Handed back a lost request: there is no room to complete it', {
        ...this.about(entry),
        reason,
      });
      const { ledger } = this.pool;
      const nodes = accepted.reused.map((handle) => ({ handle, change: ledger.freeing(handle.node) }));
      await this.orWithdrawn(entry, () => accepted.request.release({ state: 'requested' }, nodes));
    });
  }

  /** Nodes that a withdrawn request had are unlocked; the clean-up of vanished requests deallocates them. */
  private async orWithdrawn(entry: RequestEntry, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (error instanceof RequestGoneError) this.pool.log.info('Request withdrawn', this.about(entry));
      else if (error instanceof LostOwnershipError) {
        this.pool.log.info('Another program decided about the request meanwhile', this.about(entry));
      } else throw error;
    }
  }

  private inHand(task: string, entry: RequestEntry, work: () => Promise<void>): void {
    this.handlers.set(entry.id, undefined);
    this.pool.context.tasks.run(
      task,
      async () => {
        let failed = true;
        try {
          await work();
          failed = false;
        } catch (error) {
          if (!isZooKeeperError(error)) throw error;
          // The caches will tell what became of it.
          this.pool.log.warn('A request is looked at again later: ZooKeeper failed', { ...this.about(entry), error });
        } finally {
          const delayMs = failed ? FAILED_DELAY_MS : this.collisionDelayMs(entry.id);
          this.handlers.delete(entry.id);
          if (this.handlers.size === 0) this.onIdle?.();
          this.listener.finished(entry.id, delayMs);
        }
      },
      this.about(entry),
    );
  }

  /** Time at random: acceptances that refuse each other at the same time must not try again at the same time. */
  private collisionDelayMs(requestId: string): number {
    if (this.handlers.get(requestId)?.isHandOverRefused !== true) return 0;
    return Math.ceil(this.pool.context.random.next() * MAX_COLLISION_DELAY_MS);
  }

  /** Takes the request, and holds what it gets; undefined when somebody else was faster. */
  private async accept(decided: Decided): Promise<RequestHandler | undefined> {
    const { entry, assignment, reservation } = decided;
    const claimed = assignment.parts.flatMap((part) => (part.kind === 'launch' ? [] : [part.entry.id]));
    for (const id of claimed) this.claimed.add(id);
    this.writing += 1;
    try {
      const accepted = await this.take(entry, assignment, true);
      // From here on, the records count.
      reservation?.release();
      if (accepted === undefined) return undefined;
      const work = this.handle(decided, accepted);
      await work.lockNodes(accepted.created);
      return work;
    } finally {
      for (const id of claimed) this.claimed.delete(id);
      this.writing -= 1;
      this.listener.progressed(entry.id);
    }
  }

  /** Undefined when somebody else was faster. */
  private async take(
    entry: RequestEntry,
    assignment?: Assignment,
    launching = false,
  ): Promise<AcceptedRequest | undefined> {
    const { requests } = this.pool.context.store;
    const parts = assignment?.parts ?? [];
    const accepted = await requests.accept(entry, {
      create: parts.flatMap((part) =>
        launching && part.kind === 'launch' ? [this.plan(entry.request, assignment?.zone, part)] : [],
      ),
      reuse: parts.flatMap((part) => (part.kind === 'ready' ? [part.entry] : [])),
    });
    // Behind the answer to a read, the cache knows what there is to know.
    if (accepted === undefined) await requests.read(entry.id);
    return accepted;
  }

  private handle({ entry, assignment, handler }: Decided, accepted: AcceptedRequest): RequestHandler {
    const { context, log } = this.pool;
    this.pool.decided(entry.id, 'accepted', inWords(assignment));
    log.info('Accepted request', { ...this.about(entry), launches: accepted.created.length });
    const slots = slotsOf(assignment, accepted.reused);
    const work = new RequestHandler(context, this.handlerPool, handler, accepted.request, slots);
    this.handlers.set(entry.id, work);
    if (context.store.requests.get(entry.id) === undefined) work.withdrawn();
    if (this.stopped) work.stop();
    return work;
  }

  private plan(request: NodeRequest, zone: string | undefined, { label, upload }: Launch): NodeData {
    const { context, id: launcher, config, labels, provider } = this.pool;
    const resources = labels.need(label.name).toResources();
    return plannedNode(
      { provider: provider.config.name, pool: config, label, launcher, request, resources, upload, az: zone },
      unixSeconds(context),
    );
  }

  /** The request, for the log. */
  private about({ id, request }: RequestEntry): LogFields {
    const { provider, config } = this.pool;
    return {
      node_request_id: id,
      event_id: request.event_id,
      provider: provider.config.name,
      pool: config.name,
      labels: request.node_types,
    };
  }
}
