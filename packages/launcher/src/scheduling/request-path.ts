/**
 * The path of a request through a pool, stage by stage:
 *
 * 1. admission: `requests/admission.ts`, `evaluate`
 * 2. scheduling: `scheduling/pool-scheduler.ts`, `PoolScheduler.schedule`
 * 3. acceptance: `requests/acceptance.ts`, `acceptRequest`
 * 4. quota confirmation: `quota/quota-confirmation.ts`, `confirmQuota`
 * 5. launch: `launch/launch-nodes.ts`, `launchNodes`
 * 6. fulfilment: `requests/request-fulfilment.ts`, `RequestFulfilment.fulfil`
 *
 * `RequestScheduler` calls `offer`, which decides (1 and 2) within the call; `RequestAcceptor` and `RequestFulfilment`
 * run the other stages. All read the facts of the `Pool` and report `RequestOutcome`s, which `apply` applies.
 */

import type { NodeRequest } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import type { BreakerFailure } from '../capacity/circuit-breaker.js';
import type { BreakerCause, PoolActivity, Refusal } from '@nodepool/status';
import type { ProviderHealth } from '../capacity/provider-health.js';
import type { ProviderLimits } from '../quota/provider-limits.js';
import type { CapacityHold, QuotaLedger } from '../quota/quota-ledger.js';
import { evaluate, type AdmissionDecision } from '../requests/admission.js';
import type { Pool } from '../pool/pool.js';
import { RequestAcceptor } from '../requests/request-acceptor.js';
import { recordDecision, recordLeave, recordWait, type RequestOutcome } from '../requests/request-outcome.js';
import type { Concurrency } from './concurrency.js';
import type { RequestClass } from './open-requests.js';
import type { Precedence } from '../precedence/precedence.js';
import { PoolScheduler, type SchedulingDecision } from './pool-scheduler.js';
import type { RequestScheduler } from './request-scheduler.js';
import type { ScheduledPool } from './scheduled-pools.js';

/** Parts that requests depend on: those of the provider, and those that all providers of a launcher share. */
export interface RequestResources {
  readonly ledger: QuotaLedger;
  readonly scheduler: RequestScheduler;
  readonly health: ProviderHealth;
  readonly limits: ProviderLimits;
  readonly concurrency: Concurrency;
  readonly precedence: Precedence;
}

export class RequestPath implements ScheduledPool {
  private readonly scheduler: PoolScheduler;
  private readonly acceptor: RequestAcceptor;
  /** The requests that wait for the start of the provider, by class. */
  private readonly awaitingStart = new WeakMap<RequestClass, RequestEntry>();

  constructor(
    private readonly pool: Pool,
    private readonly resources: RequestResources,
    /** Called with true if requests wait for capacity that another pool may have. */
    private readonly onBlocked: (blocked: boolean) => void,
  ) {
    this.acceptor = new RequestAcceptor(pool, (requestId, outcome) => this.apply(requestId, outcome));
    this.scheduler = new PoolScheduler(pool, {
      ...resources,
      onCapacity: (classes) => resources.scheduler.offer(classes, this),
      isClaimed: (nodeId) => this.acceptor.claims(nodeId) || resources.scheduler.isClaimed(nodeId),
      waitForOthers: (request, isResumed) => this.waitForOthers(request, isResumed),
    });
  }

  start(): void {
    this.resources.scheduler.add(this);
  }

  /** Stops accepting requests. Resolves once the limits of all accepted requests are confirmed. */
  retire(): Promise<void> {
    this.resources.scheduler.remove(this);
    this.scheduler.stop();
    return this.acceptor.recorded();
  }

  /** Ends the work on requests in progress, so that they can be resumed. */
  release(): void {
    this.acceptor.release();
  }

  /** Resolves once every accepted request is completed or released. */
  idle(): Promise<void> {
    return this.acceptor.idle();
  }

  /** Evaluates and schedules all requests again, because a fact has changed that decisions depend on. */
  reevaluate(): void {
    this.resources.scheduler.offerAllTo(this);
  }

  /** Schedules the waiting requests again: there may be more capacity. `removed`: the cloud has deleted an instance. */
  capacityFreed(removed: boolean): void {
    if (removed) this.pool.labels.offers.capacityFreed();
    this.scheduler.wake();
  }

  /** Schedules all requests again after a read of the cloud's limits. `changed`: they differ from the last ones. */
  limitsRead(changed: boolean): void {
    // If the limits have not changed, the cloud will still refuse the launches that it refused before.
    if (changed) this.pool.labels.offers.capacityFreed();
    this.reevaluate();
  }

  get id(): string {
    return this.pool.id;
  }

  get isStarting(): boolean {
    return this.resources.health.isStarting;
  }

  offer(requestClass: RequestClass, entry: RequestEntry): boolean {
    // A pool serves requests before the other pools of its provider know what their labels need.
    const isStarting = this.isStarting && !this.pool.running;
    // Each pool that is registered meanwhile offers all requests again, to each pool that starts.
    if (isStarting && this.awaitingStart.get(requestClass) === entry) return false;
    const admission = evaluate(entry, this.pool, requestClass);
    if (isStarting && admission.kind === 'wait') this.awaitingStart.set(requestClass, entry);
    else this.awaitingStart.delete(requestClass);
    if (admission.kind === 'admit')
      return this.dispatch(requestClass, entry, this.scheduler.schedule(requestClass, entry));
    this.scheduler.forget(requestClass);
    return this.leaveOrDecline(requestClass, entry, admission);
  }

  hasLabels(labels: readonly string[]): boolean {
    return labels.every((label) => this.pool.config.labels.has(label));
  }

  expire(requestClass: RequestClass, entry: RequestEntry): boolean {
    const admission = evaluate(entry, this.pool, requestClass);
    if (admission.kind === 'ignore') return false;
    const { reason } = this.pool.waitLimits.limitOf(entry.request);
    const latest = waitOf(admission) ?? this.scheduler.waitOf(requestClass);
    const text = latest === undefined ? reason : `${reason}: ${latest}`;
    this.acceptor.decline(entry, { cause: 'expired', reason: text });
    return true;
  }

  hasDeclined({ declined_by: declinedBy }: NodeRequest): boolean {
    return declinedBy.includes(this.pool.id);
  }

  firstChanged(requestClass: RequestClass): void {
    this.scheduler.firstChanged(requestClass);
  }

  settled(): void {
    this.scheduler.settle();
    this.onBlocked(this.scheduler.isBlocked);
  }

  cancelled(requestId: string): void {
    this.acceptor.cancel(requestId);
  }

  /** Returns what the pool is doing, for the stack dump and for explanations. */
  activity(): Pick<PoolActivity, 'waiting' | 'next' | 'accepting' | 'deferred' | 'outOfCapacity' | 'requests'> {
    const { scheduler, acceptor } = this;
    return {
      waiting: scheduler.size,
      next: scheduler.next?.id,
      accepting: acceptor.accepting,
      deferred: this.resources.scheduler.retryCount,
      outOfCapacity: this.pool.labels.offers.health().some(({ obstacle }) => isFull(obstacle?.cause)),
      requests: acceptor.activity(),
    };
  }

  private waitForOthers(request: NodeRequest, isResumed: boolean): number {
    const { config, place } = this.pool;
    return this.resources.precedence.waitForRequest(request, { priority: config.priority, ...place }, isResumed);
  }

  /** Leaves the request to another launcher, and holds what that launcher would use. */
  private standBy(
    { resumable }: RequestClass,
    entry: RequestEntry,
    waitMs: number,
    hold?: CapacityHold,
    nodes: readonly string[] = [],
  ): void {
    recordDecision(this.pool, entry.id, 'leaves it to another launcher first');
    const left = (request: NodeRequest): number => this.waitForOthers(request, resumable);
    this.resources.scheduler.standBy({ entry, pool: this, hold, nodes, waitMs: left }, waitMs);
  }

  /** Declines the request unless another launcher acts first: it may serve the request. */
  private decline(requestClass: RequestClass, entry: RequestEntry, refusal: Refusal): void {
    const waitMs = this.waitForOthers(entry.request, requestClass.resumable);
    if (waitMs > 0) this.standBy(requestClass, entry, waitMs);
    else this.acceptor.decline(entry, refusal);
  }

  /** Returns true if the pool takes the request. */
  private leaveOrDecline(
    requestClass: RequestClass,
    entry: RequestEntry,
    admission: Exclude<AdmissionDecision, { kind: 'admit' }>,
  ): boolean {
    switch (admission.kind) {
      case 'decline':
        this.decline(requestClass, entry, admission);
        return true;
      case 'wait':
        recordWait(this.pool, entry.id, 'waits', admission.wait);
        return false;
      case 'leave': {
        const taker = admission.isToLauncher === true ? 'another launcher in this pool' : 'other pools';
        recordLeave(this.pool, entry.id, `leaves it to ${taker}`, admission);
        return false;
      }
      case 'declined':
      case 'ignore':
        return false;
    }
  }

  /** Returns true if the pool takes the request. */
  private dispatch(requestClass: RequestClass, entry: RequestEntry, decision: SchedulingDecision): boolean {
    switch (decision.kind) {
      case 'stand-by':
        this.standBy(requestClass, entry, decision.waitMs, decision.hold, decision.nodes);
        return true;
      case 'serve':
        this.acceptor.serve(decision.scheduled);
        return true;
      case 'decline':
        this.decline(requestClass, entry, decision);
        return true;
      case 'requeue':
        this.acceptor.requeue(entry, decision.reason);
        return true;
      case 'wait':
        return false;
    }
  }

  /** Applies the report of a stage to the state that later decisions depend on. */
  private apply(requestId: string, outcome: RequestOutcome): void {
    const { scheduler, health, limits } = this.resources;
    switch (outcome.kind) {
      case 'recorded':
        scheduler.recorded(requestId);
        return;
      case 'reached': {
        const { attempt, evidence, isLate = false } = outcome;
        this.pool.labels.offers.succeeded(attempt.offer, evidence, attempt.startedAt, isLate);
        health.launchReached(evidence, attempt.startedAt);
        if (evidence === 'ready') this.resources.concurrency.succeeded();
        return;
      }
      case 'attempt-failed':
        this.attemptFailed(outcome);
        if (outcome.fault.cause === 'quota') limits.invalidate();
        return;
      case 'retrying': {
        const { attempt, fault, failure } = outcome;
        if (fault.scope === 'provider') health.callFailed(failure);
        else if (fault.scope === 'offer') this.pool.labels.offers.failed(attempt.offer, countedOf(outcome));
        if (fault.cause === 'throttled') this.resources.concurrency.throttled();
        return;
      }
      case 'given-up':
        scheduler.givenUp(requestId, this.pool.id);
        return;
      case 'ended':
        scheduler.ended(requestId, outcome.retryAfterMs);
    }
  }

  private attemptFailed(outcome: FailedAttempt): void {
    const { attempt, fault } = outcome;
    const { health } = this.resources;
    const { offers } = this.pool.labels;
    const { offer, startedAt } = attempt;
    const { scope, cause } = fault;
    const counted = countedOf(outcome);
    if (scope === 'provider') health.launchFailed(counted);
    if (cause === 'throttled') this.resources.concurrency.throttled();
    if (scope !== 'node' && scope !== 'offer') return;
    if (scope === 'node') {
      // The cloud had capacity for the instance.
      offers.succeeded(offer, 'created', startedAt);
      health.launchReached('created', startedAt);
    }
    if (this.pool.context.capacity.breakers || cause !== 'node') offers.failed(offer, counted);
  }
}

type FailedAttempt = Extract<RequestOutcome, { kind: 'attempt-failed' | 'retrying' }>;

/** Returns the failure of an attempt as circuit breakers count it. */
function countedOf({ attempt: { startedAt }, fault: { cause }, failure }: FailedAttempt): BreakerFailure {
  return { cause, reason: failure.message, startedAt, retryAfterMs: failure.retryAfterMs };
}

function isFull(cause: BreakerCause | undefined): boolean {
  return cause === 'quota' || cause === 'capacity';
}

/** Returns what a request that the pool does not admit waits for, in words. */
function waitOf(admission: AdmissionDecision): string | undefined {
  if (admission.kind === 'wait') return admission.wait.reason;
  return admission.kind === 'leave' || admission.kind === 'decline' ? admission.reason : undefined;
}
