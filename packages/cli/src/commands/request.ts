/** `nodepool request LABEL...`: asks for nodes as a requestor does, keeps them for a while, gives them back. */

import { nodeListOf, type NodeHandle, type RequestEntry } from '@nodepool/store';
import { sleep, type NodeRequest, type NodeRequestData } from '@nodepool/core';
import { RefusedError, type ListFormat, type StoreContext } from '../command-context.js';
import { printList } from '../print-list.js';
import { startDeadline, waitUntil } from '../wait.js';
import { waitUntilGone } from './delete.js';

export interface RequestOptions {
  /** Nodes of each label. */
  readonly count: number;
  /** 0 to 999, lower is served first. */
  readonly priority: number;
  readonly tenant: string | undefined;
  /** Only nodes of this provider. */
  readonly provider: string | undefined;
  /** Seconds to wait for the nodes; undefined: without end. */
  readonly timeout: number | undefined;
  /** Seconds to keep the nodes; undefined: until interrupted. */
  readonly hold: number | undefined;
  readonly format: ListFormat;
}

const REQUESTOR = 'nodepool-cli';
const NODE_LOCK_TIMEOUT_MS = 30_000;
const COLUMNS = [
  'id',
  'provider',
  'label',
  'public_ipv4',
  'ipv6',
  'private_ipv4',
  'AZ',
  'hostname',
  'username',
  'connection_port',
];

/**
 * Resolves once the nodes were given back and are gone. An interruption ends the wait for nodes (rejects) or the holding
 * of them (gives them back); the wait for their deletion is only ended from outside. Rejects with `RefusedError` when
 * there are no nodes, or when their locks are lost.
 */
export async function request(
  context: StoreContext,
  labels: readonly string[],
  options: RequestOptions,
): Promise<void> {
  noteUnknownLabels(context, labels);
  const nodeTypes = labels.flatMap((label) => Array.from({ length: options.count }, () => label));
  const id = await context.store.requests.submit(requestData(context, nodeTypes, options), {
    priority: options.priority,
  });
  let handles: readonly NodeHandle[];
  try {
    const fulfilled = await waitForNodes(context, id, options.timeout);
    handles = await takeNodes(context, fulfilled);
  } finally {
    // Whatever was allocated to a request that goes is released by the launcher, unless it is locked by now.
    await context.store.requests.remove(id);
  }
  try {
    printNodes(context, handles, options.format);
    await holdNodes(context, handles, options.hold);
  } finally {
    await Promise.all(handles.map((handle) => giveBack(context, handle)));
  }
  await waitUntilGone(
    { ...context, interrupted: new AbortController().signal },
    handles.map((handle) => handle.id),
  );
  context.out.note('all nodes are gone');
}

function requestData(
  { clock, random }: StoreContext,
  nodeTypes: readonly string[],
  options: RequestOptions,
): NodeRequestData {
  const now = clock.now() / 1000;
  return {
    state: 'requested',
    state_time: now,
    node_types: nodeTypes,
    nodes: [],
    declined_by: [],
    reuse: true,
    requestor: REQUESTOR,
    requestor_data: null,
    provider: options.provider ?? null,
    relative_priority: 0,
    event_id: random.uuidHex(),
    created_time: now,
    tenant_name: options.tenant ?? null,
  };
}

function noteUnknownLabels({ store, out }: StoreContext, labels: readonly string[]): void {
  const served = new Set([...store.components.pools()].flatMap((pool) => pool.supported_labels));
  const unknown = labels.filter((label) => !served.has(label));
  if (unknown.length > 0) out.note(`no registered pool serves ${unknown.join(', ')} at the moment; waiting for one`);
}

/** Follows the request until it is fulfilled, and tells of each of its states. */
async function waitForNodes(context: StoreContext, id: string, timeout: number | undefined): Promise<NodeRequest> {
  const { store, out, clock, interrupted } = context;
  const deadline =
    timeout === undefined
      ? undefined
      : startDeadline(
          clock,
          timeout * 1000,
          new RefusedError(`request ${id} was not fulfilled within ${timeout} s; it is withdrawn`),
        );
  const end = deadline === undefined ? interrupted : AbortSignal.any([interrupted, deadline.signal]);
  let said = '';
  const look = (): NodeRequest | undefined => {
    const entry = store.requests.get(id);
    const state = stateText(entry);
    if (state !== said) out.note(`request ${id}: ${state}`);
    said = state;
    return outcomeOf(id, entry);
  };
  try {
    return await waitUntil(look, (listener) => store.requests.onChange(listener), end);
  } finally {
    deadline?.cancel();
  }
}

function stateText(entry: RequestEntry | undefined): string {
  if (entry === undefined) return 'is not there';
  const { state, declined_by } = entry.request;
  return declined_by.length === 0 ? state : `${state}, declined by ${declined_by.join(', ')}`;
}

function outcomeOf(id: string, entry: RequestEntry | undefined): NodeRequest | undefined {
  if (entry === undefined) throw new RefusedError(`request ${id} was removed by somebody else`);
  const { request } = entry;
  if (request.state === 'fulfilled') return request;
  if (request.state !== 'failed') return undefined;
  throw new RefusedError(
    `request ${id} failed: declined by ${request.declined_by.join(', ') || 'nobody, but every launch failed'}; the logs of the launchers say why`,
  );
}

/** Locks all the nodes, and sets them in use. */
async function takeNodes(context: StoreContext, { id, nodes }: NodeRequest): Promise<readonly NodeHandle[]> {
  const { store, interrupted } = context;
  const handles: NodeHandle[] = [];
  try {
    for (const nodeId of nodes) {
      const handle = await store.nodes.lock(nodeId, { timeoutMs: NODE_LOCK_TIMEOUT_MS, signal: interrupted });
      handles.push(handle);
      const { state, allocated_to } = handle.node;
      if (state === 'ready' && allocated_to === id) continue;
      throw new RefusedError(
        `node ${nodeId} is ${state} and allocated to ${allocated_to ?? 'nobody'}, not ready for request ${id}`,
      );
    }
    await Promise.all(handles.map((handle) => handle.update({ state: 'in-use' })));
    return handles;
  } catch (error) {
    await Promise.all(handles.map((handle) => giveBack(context, handle)));
    throw error;
  }
}

function printNodes({ out, clock, store }: StoreContext, handles: readonly NodeHandle[], format: ListFormat): void {
  const entries = handles.map(({ id, node }) => store.nodes.get(id) ?? { id, node, version: 0, locked: true });
  printList(out, nodeListOf(entries, { columns: COLUMNS, now: clock.now() }), format);
}

/** Rejects when the session that holds the locks is lost. */
async function holdNodes(
  { out, clock, interrupted }: StoreContext,
  handles: readonly NodeHandle[],
  seconds: number | undefined,
): Promise<void> {
  const lost = AbortSignal.any(handles.map((handle) => handle.lock.lost));
  const end = AbortSignal.any([interrupted, lost]);
  out.note(
    seconds === undefined ? 'holding the nodes until interrupted (Ctrl-C)' : `holding the nodes for ${seconds} s`,
  );
  try {
    if (seconds === undefined)
      await waitUntil(
        () => undefined,
        () => () => undefined,
        end,
      );
    else await sleep(clock, seconds * 1000, end);
  } catch (error) {
    if (!end.aborted) throw error;
  }
  if (lost.aborted) {
    throw new RefusedError(
      'the locks of the nodes are lost, with the ZooKeeper session or by somebody else’s hand; launchers delete the nodes',
      {
        cause: lost.reason,
      },
    );
  }
}

async function giveBack({ out }: StoreContext, handle: NodeHandle): Promise<void> {
  try {
    // What nobody has used yet stays good for others.
    await handle.release(handle.node.state === 'in-use' ? { state: 'used' } : undefined);
  } catch (error) {
    // Without its lock, a node in use is deleted by a launcher all the same.
    out.note(`node ${handle.id} could not be given back: ${error instanceof Error ? error.message : String(error)}`);
  }
}
