/**
 * Acceptance, the first stage that writes: one transaction locks the request and its ready nodes and creates the
 * records of the nodes to launch. A pool also accepts requests only to decline them or to hand them back.
 */

import type { NodeData, NodeRequest, NodeRequestHandler } from '@nodepool/core';
import type { AcceptedRequest, NodeEntry, RequestEntry, RequestStore } from '@nodepool/store';
import { LostOwnershipError, RequestGoneError, TransactionTooLargeError } from '@nodepool/store';
import { unixSeconds } from '../context.js';
import { plannedNode } from '../launch/node-record.js';
import { started } from '../launch/recorded-attempt.js';
import type { CapacityHold } from '../quota/quota-ledger.js';
import { afterDecline } from './admission.js';
import { describeAllocation, type AllocatedNode, type Allocation } from './allocation.js';
import type { Pool } from '../pool/pool.js';
import type { requestFields } from './request-info.js';
import type { Refusal } from '@nodepool/status';
import { recordDecision, recordLeave } from './request-outcome.js';
import { resumableNodes } from '../deletion/node-lifecycle.js';

/** A request that the scheduler has decided to serve now, with everything that was acquired for it. */
export interface ScheduledRequest {
  readonly entry: RequestEntry;
  readonly allocation: Allocation;
  readonly driverHandler: NodeRequestHandler;
  /** Ids of pools that could not launch its nodes before. */
  readonly abandonedBy: ReadonlySet<string>;
  /** Capacity for the new nodes, held until their records count. */
  readonly hold: CapacityHold | undefined;
  /** Permit of the provider (`max-concurrency`) and probes of offers, held until the work on the request ends. */
  readonly permit: { release(): void };
}

/**
 * Accepts the request to serve it. Resolves with undefined if another launcher has accepted it first, or if the pool
 * has declined it because its records exceed the size of a transaction.
 */
export async function acceptRequest(
  pool: Pool,
  { entry, allocation }: ScheduledRequest,
): Promise<AcceptedRequest | undefined> {
  const create = allocation.nodes.flatMap((node) =>
    node.kind === 'new' ? [plan(pool, entry.request, allocation.zone, node)] : [],
  );
  let accepted: AcceptedRequest | undefined;
  try {
    const ready = allocation.nodes.flatMap((node) => (node.kind === 'ready' ? [node.entry] : []));
    accepted = await lockRequest(pool, entry, ready, create, startOf(pool, entry.request, allocation));
  } catch (error) {
    if (!(error instanceof TransactionTooLargeError)) throw error;
    await declineRequest(pool, entry, { cause: 'limit', reason: error.message });
  }
  if (accepted === undefined) return undefined;
  recordDecision(pool, entry.id, 'accepted', describeAllocation(allocation));
  pool.log.info('Accepted request', aboutRequest(pool, entry, accepted.created.length));
  return accepted;
}

export async function declineRequest(pool: Pool, entry: RequestEntry, refusal: Refusal): Promise<void> {
  const { reason } = refusal;
  const accepted = await lockRequest(pool, entry, [], []);
  if (accepted === undefined) return;
  const change = afterDecline(accepted.request.request, pool, reason);
  const failed = change.state === 'failed';
  recordLeave(pool, entry.id, failed ? 'failed it: every pool has declined' : 'declined', refusal);
  pool.log.info(failed ? 'Failed request' : 'Declined request', { ...aboutRequest(pool, entry), reason });
  await writeUnlessGone(pool, entry, () => accepted.request.release(change), failed ? 'failed' : undefined);
}

/**
 * Requeues an orphaned request that has nodes in the pool, because there is no capacity for its missing nodes. Two
 * requests that hold nodes and wait for more would block each other forever. Ready nodes become free; launches are
 * abandoned.
 */
export async function requeueRequest(pool: Pool, entry: RequestEntry, reason: string): Promise<void> {
  const own = resumableNodes(pool.context.store, entry.request).filter(
    ({ node, locked }) => node.state === 'ready' && !locked,
  );
  const accepted = await lockRequest(pool, entry, own, []);
  if (accepted === undefined) return;
  recordDecision(pool, entry.id, 'released its nodes, to wait for capacity for all of them', reason);
  pool.log.info('Requeued an orphaned request: there is no capacity to complete it', {
    ...aboutRequest(pool, entry),
    reason,
  });
  const nodes = accepted.reused.map((handle) => ({ handle, change: pool.ledger.changeToFree(handle.node) }));
  await writeUnlessGone(pool, entry, () => accepted.request.release({ state: 'requested' }, nodes));
}

/** Returns log fields of the request; `launches` is the number of nodes to be launched. */
export function aboutRequest(
  { provider, config }: Pool,
  { id, request }: RequestEntry,
  launches?: number,
): ReturnType<typeof requestFields> {
  return {
    node_request_id: id,
    event_id: request.event_id,
    provider: provider.config.name,
    pool: config.name,
    labels: request.node_types,
    launches,
  };
}

async function lockRequest(
  { context, name }: Pool,
  entry: RequestEntry,
  reuse: readonly NodeEntry[],
  create: readonly NodeData[],
  start?: Start,
): Promise<AcceptedRequest | undefined> {
  const { requests } = context.store;
  const accepted = await requests.accept(entry, { create, reuse, ...(start === undefined ? {} : { start }) });
  // Once a read is answered, the cache has every change up to the refusal.
  if (accepted === undefined) await requests.read(entry.id);
  else context.timelines.taken(entry.id, name);
  return accepted;
}

/** The changes that make the new records `building`, and the condition on which their quota needs no confirmation. */
type Start = NonNullable<Parameters<RequestStore['accept']>[1]['start']>;

/**
 * Returns how the transaction of the acceptance can start the launches as well, which saves another one; undefined if
 * the limits need the confirmation after it. docs/how-it-works.md explains why limits hold.
 */
function startOf(pool: Pool, { tenant_name: tenant }: NodeRequest, { nodes }: Allocation): Start | undefined {
  const launches = nodes.flatMap((node) => (node.kind === 'new' ? [node] : []));
  // Ready nodes can be handed over between tenants, which the ids of the records do not show.
  if (launches.length < nodes.length || pool.ledger.isLimited(tenant)) return undefined;
  return {
    changes: launches.map(({ offer }) => started(pool.context, offer.machineType)),
    isConfirmed: () => pool.hasRoomForHeld(tenant),
  };
}

/**
 * Ignores that the request was deleted meanwhile: its nodes are unlocked, and maintenance deallocates them. `result`:
 * the result of the request if the write ends it.
 */
async function writeUnlessGone(
  pool: Pool,
  entry: RequestEntry,
  write: () => Promise<void>,
  result?: 'failed',
): Promise<void> {
  const { timelines } = pool.context;
  try {
    await write();
    if (result !== undefined) timelines.settled(entry.id, result);
  } catch (error) {
    if (error instanceof RequestGoneError) {
      pool.log.info('Request withdrawn', aboutRequest(pool, entry));
      timelines.settled(entry.id, 'cancelled');
    } else if (error instanceof LostOwnershipError) {
      pool.log.info('Another program changed the request meanwhile', aboutRequest(pool, entry));
    } else throw error;
  }
}

function plan(
  { context, id: launcher, config, provider }: Pool,
  request: NodeRequest,
  az: string | undefined,
  { label, upload, trial, need }: Extract<AllocatedNode, { readonly kind: 'new' }>,
): NodeData {
  return plannedNode(
    {
      provider: provider.config.name,
      pool: config,
      label,
      launcher,
      request,
      resources: need.toResources(),
      upload,
      trial,
      az,
    },
    unixSeconds(context),
  );
}
