/** Ends the work on a request that is not fulfilled, and releases everything that the launcher holds of it. */

import { toDriverError, type DriverError, type Logger, type NodeRequestData } from '@nodepool/core';
import { LostOwnershipError, RequestGoneError, type NodeHandle, type RequestHandle } from '@nodepool/store';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { faultOf } from '../capacity/launch-fault.js';
import type { LaunchJob } from '../launch/launch-job.js';
import { describeShortfall, waitFor, type Shortfall } from '../quota/quota-scope.js';
import { canBeServedElsewhere } from '../pool/other-pools.js';
import { afterDecline } from './admission.js';
import type { Pool } from '../pool/pool.js';
import type { Refusal } from '@nodepool/status';
import { recordDecision, recordLeave, recordWait, type ReportOutcome } from './request-outcome.js';
import type { RecordVersion, Slot } from './slots.js';

/** The reason why the work on a request ends before it is fulfilled. */
export type Termination =
  /** The requestor has deleted the request. */
  | { readonly kind: 'cancelled' }
  /** The lock was lost with the session. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'stopped' }
  /** Another launcher in this pool continues the work, because this one cannot use the provider. */
  | { readonly kind: 'left'; readonly reason: string }
  /** The limits do not allow the acceptance. `records`: those created for it. */
  | {
      readonly kind: 'unconfirmed';
      readonly shortfall: Shortfall;
      readonly records: readonly RecordVersion[];
      /** True if ready nodes were to be handed over; a concurrent hand-over may have been refused because of it. */
      readonly isHandOver: boolean;
    }
  /** A node that was ready cannot be used any more; the request waits for another node. */
  | { readonly kind: 'unusable'; readonly reason: string }
  /** `job`: the launch that failed, if it was a launch. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly job: LaunchJob | undefined };

/** A request and everything that this launcher holds of it. */
export interface HeldRequest {
  readonly pool: Pool;
  readonly request: RequestHandle;
  readonly slots: readonly Slot[];
  /** True once the limits are confirmed for everything that the request has. */
  readonly confirmed: boolean;
  readonly log: Logger;
  readonly report: ReportOutcome;
}

export function describeTermination(termination: Termination): string {
  switch (termination.kind) {
    case 'cancelled':
      return 'the request was cancelled';
    case 'lost':
      return 'the lock of the request was lost with the session';
    case 'stopped':
      return 'the provider pool stops working on the request';
    case 'left':
      return `the request is left to another launcher: ${termination.reason}`;
    case 'unconfirmed':
      return describeShortfall(termination.shortfall);
    case 'unusable':
      return `a ready node cannot be used: ${termination.reason}`;
    case 'failed':
      return 'the work on the request failed';
  }
}

/** Writes the new states of the request and its nodes, and releases all locks even if a write fails. */
export async function abandon(held: HeldRequest, termination: Termination): Promise<void> {
  try {
    await finish(held, termination);
  } finally {
    const nodes = held.slots.flatMap(({ node }) => (node === undefined ? [] : [node]));
    await Promise.all([held.request, ...nodes].map(({ lock }) => lock.release()));
  }
}

async function finish(held: HeldRequest, termination: Termination): Promise<void> {
  const { log, request } = held;
  if (termination.kind === 'lost' || !request.lock.held) {
    log.debug('Lost the request with the session; the launcher that takes it over continues');
    decided(held, 'lost it with the session');
    return;
  }
  // The stop of a provider may interrupt a stage, which then fails, before it stops the work on requests.
  if (termination.kind === 'stopped' || (termination.kind === 'failed' && held.pool.signal.aborted)) {
    log.info('Released the request; it will be resumed');
    decided(held, 'released it, to be resumed');
    await releaseForResumption(held);
    return;
  }
  switch (termination.kind) {
    case 'cancelled':
      log.info('Request withdrawn');
      decided(held, 'withdrawn');
      settled(held, 'cancelled');
      await releaseNodes(held);
      return;
    case 'left': {
      const { reason } = termination;
      log.info('The request is left to another launcher in this pool', { reason });
      decided(held, 'leaves it to another launcher in this pool', reason);
      await releaseForResumption(held);
      return;
    }
    case 'unconfirmed':
      await undo(held, termination);
      return;
    case 'unusable':
      log.warn('A ready node cannot be used; the request waits for another one', { reason: termination.reason });
      decided(held, 'waits for another node', termination.reason);
      await releaseWithNodes(held, { state: 'requested' }, 'aborted');
      return;
    case 'failed':
      await finishFailed(held, termination);
  }
}

/** Undoes the acceptance in one transaction; the request waits for capacity. */
async function undo(held: HeldRequest, termination: Extract<Termination, { kind: 'unconfirmed' }>): Promise<void> {
  const reason = describeShortfall(termination.shortfall);
  held.log.debug('Undid the acceptance: the limits have no capacity', { reason });
  recordWait(held.pool, held.request.id, 'waits for quota', waitFor([termination.shortfall], reason));
  await releaseNodes(held);
  await writeUnlessGone(held, () => held.request.undo(termination.records));
}

async function finishFailed(
  held: HeldRequest,
  { error, job }: Extract<Termination, { kind: 'failed' }>,
): Promise<void> {
  if (error instanceof LostOwnershipError || isZooKeeperError(error)) {
    // The nodes are intact: the launcher that accepts the request next resumes them.
    held.log.warn('Released the request, to be resumed: its records could not be written', { reason: error.message });
    decided(held, 'released it, to be resumed', toDriverError(error).message);
    await releaseForResumption(held);
    return;
  }
  const failure = toDriverError(error);
  const { breakers } = held.pool.context.capacity;
  const { scope, cause } = faultOf(failure, job !== undefined && job.node.node.external_id !== null, breakers);
  const isRefused = cause === 'configuration' || cause === 'refused';
  const isRejected = isRefused && held.pool.obstacle(held.request.request) !== undefined;
  const isMoved = job !== undefined && (scope === 'offer' || scope === 'provider');
  if (isMoved && !isRejected) await leaveOrWait(held, failure);
  else await decline(held, failure);
}

/** Gives up the request without declining it: another pool serves it, or it waits until this pool can serve it. */
async function leaveOrWait(held: HeldRequest, failure: DriverError): Promise<void> {
  const { request, pool, log, report } = held;
  const isMoved = canBeServedElsewhere(request.request, pool);
  log.info(isMoved ? 'The request is left to another pool' : 'The request waits for capacity', { error: failure });
  if (isMoved) recordLeave(pool, request.id, 'leaves it to other pools', launchRefusal(failure));
  else recordWait(pool, request.id, 'waits for capacity', { kind: 'capacity', reason: failure.message });
  report(request.id, { kind: 'given-up' });
  await releaseWithNodes(held, { state: 'requested' }, 'aborted');
}

async function decline(held: HeldRequest, failure: DriverError): Promise<void> {
  held.log.warn('Declining the request: its nodes could not be launched', { error: failure });
  recordLeave(held.pool, held.request.id, 'declined: its nodes could not be launched', launchRefusal(failure));
  await releaseWithNodes(held, afterDecline(held.request.request, held.pool, failure.message), 'failed');
}

function launchRefusal({ code, message: reason }: DriverError): Refusal {
  return { cause: code === 'configuration' ? 'configuration' : 'launch', reason };
}

function decided({ pool, request }: HeldRequest, decision: string, reason?: string): void {
  recordDecision(pool, request.id, decision, reason);
}

/** Reports the end of a request that this launcher has written, or seen while it held the lock. */
function settled({ pool, request }: HeldRequest, result: 'failed' | 'cancelled'): void {
  pool.context.timelines.settled(request.id, result);
}

/** Releases the request with the change. Ready nodes become free; the others are deleted. */
async function releaseWithNodes(
  held: HeldRequest,
  change: Partial<NodeRequestData>,
  unfinished: 'failed' | 'aborted',
): Promise<void> {
  await releaseNodes(held, unfinished);
  await writeUnlessGone(held, async () => {
    await held.request.release(change);
    if (change.state === 'failed') settled(held, 'failed');
  });
}

async function writeUnlessGone(held: HeldRequest, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof RequestGoneError)) throw error;
    held.log.info('Request withdrawn');
    settled(held, 'cancelled');
  }
}

/** Frees ready nodes, and restores their owners after an unconfirmed hand-over. Others get the state `unfinished`. */
async function releaseNodes(held: HeldRequest, unfinished: 'failed' | 'aborted' = 'aborted'): Promise<void> {
  await forEachNode(held, (node, { formerOwner }) => {
    if (node.node.state !== 'ready') return node.release({ state: unfinished, allocated_to: null });
    return node.release({ ...(held.confirmed ? {} : formerOwner), allocated_to: null });
  });
}

/** Unlocks the nodes as they are, so that the next launcher resumes their launches. */
async function releaseForResumption(held: HeldRequest): Promise<void> {
  await forEachNode(held, (node) => node.release());
}

async function forEachNode(
  { slots, log }: HeldRequest,
  release: (node: NodeHandle, slot: Slot) => Promise<void>,
): Promise<void> {
  await Promise.all(
    slots.map(async (slot) => {
      const { node } = slot;
      if (node?.lock.held !== true) return;
      try {
        await release(node, slot);
      } catch (error) {
        log.warn('Failed to write the state of a released node', { node_id: node.id, error });
      }
    }),
  );
}
