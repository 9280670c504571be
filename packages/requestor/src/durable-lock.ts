/** Durable leases: locks that belong to an owner instead of a session. */

import { sleep, type Node, type NodeData, type NodeRequest } from '@nodepool/core';
import { requestPath, type NodeEntry, type NodeHandle } from '@nodepool/store';
import { isZooKeeperError, type TransactionOp } from '@nodepool/zookeeper';
import type { HeldNodes } from './api.js';
import { RETRY_MS, isTransient, pauseAfter, type RequestorContext } from './context.js';
import { LeaseLostError, NodeNotReadyError, RequestRemovedError } from './errors.js';

interface LockedNodes {
  readonly handles: readonly NodeHandle[];
  /** The label of each node. */
  readonly labels: readonly string[];
}

/** The changes in the transaction that locks nodes. */
export interface LockEffect {
  /** The change of each node. */
  readonly change: Partial<NodeData>;
  /** Operations of the program. */
  readonly alongside: readonly TransactionOp[];
}

/** Steps of the request whose nodes are locked. */
interface RequestSteps {
  /** Resolves with the fulfilled request. Rejects with `RequestRemovedError` if it does not exist. */
  readonly untilFulfilled: () => Promise<NodeRequest>;
  /** Throws `NodeNotReadyError` if the node cannot be locked for the request. */
  readonly check: (id: string, node: Node) => void;
}

/**
 * Locks the nodes of a request with a change and deletes the request in one transaction. If the request does not exist,
 * adopts the nodes that the owner has locked for it.
 */
export async function lockDurably(
  context: RequestorContext,
  requestId: string,
  { untilFulfilled, check }: RequestSteps,
  owner: string,
  effect: LockEffect,
  signal: AbortSignal,
): Promise<LockedNodes> {
  let request: NodeRequest | undefined;
  for (;;) {
    try {
      request = await untilFulfilled();
    } catch (error) {
      if (!(error instanceof RequestRemovedError)) throw error;
      const adopted = await adoptLocked(context, requestId, owner, request, signal);
      if (adopted === undefined) throw error;
      return adopted;
    }
    try {
      const handles = await lockAll(context, request, check, owner, effect, signal);
      if (handles !== undefined) return { handles, labels: request.node_types };
    } catch (error) {
      signal.throwIfAborted();
      // The request was deleted, perhaps by an earlier attempt with an unknown outcome.
      const isRequestGone = isZooKeeperError(error, 'no-node') && error.operationIndex === request.nodes.length;
      if (!isTransient(error) && !isRequestGone) throw error;
    }
    await sleep(context.clock, RETRY_MS, signal);
  }
}

/** Resolves with undefined if a node was changed or is locked by another program. */
async function lockAll(
  { store }: RequestorContext,
  { id, nodes }: NodeRequest,
  check: RequestSteps['check'],
  owner: string,
  { change, alongside }: LockEffect,
  signal: AbortSignal,
): Promise<readonly NodeHandle[] | undefined> {
  const entries: NodeEntry[] = [];
  for (const entry of await Promise.all(nodes.map((node) => store.nodes.read(node, { signal })))) {
    const nodeId = nodes[entries.length] ?? '';
    if (entry === undefined) throw new NodeNotReadyError(id, nodeId, 'does not exist any more');
    check(nodeId, entry.node);
    if (entry.locked) return undefined;
    entries.push(entry);
  }
  const targets = entries.map((from) => ({ id: from.id, from, change }));
  const after: TransactionOp[] = [{ type: 'delete', path: requestPath(id) }, ...alongside];
  return store.nodes.tryLockAll(targets, { owner, watchContender: true, after, signal });
}

/** Adopts the nodes that the owner has locked for a request. Resolves with undefined if there are none. */
async function adoptLocked(
  context: RequestorContext,
  requestId: string,
  owner: string,
  known: NodeRequest | undefined,
  signal: AbortSignal,
): Promise<LockedNodes | undefined> {
  const held = await heldNodes(context, owner, signal, known?.nodes);
  const found = held.find(({ requestId: id }) => id === requestId);
  if (found === undefined) return undefined;
  const ids = known?.nodes ?? found.nodes;
  const handles = await adoptNodes(context, owner, ids, true, signal);
  const labels = handles.map(({ node }, index) => known?.node_types[index] ?? node.type[0] ?? '');
  return { handles, labels };
}

/** Resolves with the nodes that the owner holds, by request; of all nodes, or only of `among`. */
export async function heldNodes(
  context: RequestorContext,
  owner: string,
  signal: AbortSignal,
  among?: readonly string[],
): Promise<readonly HeldNodes[]> {
  const { store } = context;
  const entries = await untilAnswered(context, signal, async () => {
    const ids = await store.nodes.heldBy(owner, { signal, ...(among === undefined ? {} : { among }) });
    return Promise.all(ids.map((id) => store.nodes.read(id, { signal })));
  });
  const byRequest = new Map<string | null, string[]>();
  for (const entry of entries) {
    if (entry === undefined) continue;
    const { allocated_to: request } = entry.node;
    byRequest.set(request, [...(byRequest.get(request) ?? []), entry.id]);
  }
  return [...byRequest].map(([requestId, nodes]) => ({ requestId, nodes }));
}

/** Adopts all of the nodes. Rejects with `LeaseLostError` if the owner does not hold one of them. */
export async function adoptNodes(
  context: RequestorContext,
  owner: string,
  ids: readonly string[],
  takeOver: boolean,
  signal: AbortSignal,
): Promise<readonly NodeHandle[]> {
  const adopt = (id: string): Promise<NodeHandle | undefined> =>
    context.store.nodes.adopt(id, owner, { takeOver, watchContender: true, signal });
  const found = await Promise.all(ids.map((id) => untilAnswered(context, signal, () => adopt(id))));
  const lost = ids.filter((_, index) => found[index] === undefined);
  if (lost.length > 0) throw new LeaseLostError(lost, new Error(`${owner} does not hold their locks`));
  return found.filter((handle) => handle !== undefined);
}

/** Repeats a call while ZooKeeper cannot be reached. */
async function untilAnswered<T>(context: RequestorContext, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      await pauseAfter(context, error, signal);
    }
  }
}
