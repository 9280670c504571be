/** `nodepool request LABEL...`: requests nodes, holds them for a time, and returns them. */

import { isError, sleep } from '@nodepool/core';
import {
  LeaseLostError,
  NodeNotReadyError,
  openRequestor,
  RequestFailedError,
  RequestRemovedError,
  RequestTimeoutError,
  type Lease,
  type SubmittedRequest,
} from '@nodepool/requestor';
import { nodeListOf, type NodeEntry } from '@nodepool/store';
import { RefusedError, type ListFormat, type StoreContext } from '../command-context.js';
import { printList } from '../print-list.js';
import { waitUntil } from '../wait.js';
import { waitUntilGone } from './delete.js';

export interface RequestOptions {
  /** Number of nodes of each label. */
  readonly count: number;
  /** 0 to 999; lower values are served first. */
  readonly priority: number;
  readonly tenant: string | undefined;
  /** Limits the request to nodes of this provider. */
  readonly provider: string | undefined;
  /** Seconds to wait for the nodes; undefined: no limit. */
  readonly timeout: number | undefined;
  /** Seconds to hold the nodes; undefined: until interrupted. */
  readonly hold: number | undefined;
  readonly format: ListFormat;
}

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
 * Resolves once the nodes were returned and deleted. An interruption ends the wait for nodes (rejects) or the hold
 * (returns the nodes), but not the wait for their deletion. Rejects with `RefusedError` if there are no nodes, or if
 * their locks are lost.
 */
export async function request(
  context: StoreContext,
  labels: readonly string[],
  options: RequestOptions,
): Promise<void> {
  noteUnknownLabels(context, labels);
  const { store, clock, random, log } = context;
  const requestor = openRequestor(store.zooKeeper, { name: 'nodepool-cli', clock, random, log });
  try {
    const request = await requestor.request({
      labels: labels.flatMap((label) => Array.from({ length: options.count }, () => label)),
      priority: options.priority,
      tenant: options.tenant ?? null,
      provider: options.provider ?? null,
    });
    const lease = await takeNodes(context, request, options);
    try {
      await printNodes(context, lease, options.format);
      await holdNodes(context, lease, options.hold);
    } finally {
      await lease.return();
    }
    await waitUntilGone(
      { ...context, interrupted: new AbortController().signal },
      lease.nodes.map(({ id }) => id),
    );
  } catch (error) {
    throw refusalOf(error);
  } finally {
    await requestor.close();
  }
  context.out.note('all nodes are gone');
}

function noteUnknownLabels({ store, out }: StoreContext, labels: readonly string[]): void {
  const served = new Set([...store.components.pools()].flatMap((pool) => pool.supported_labels));
  const unknown = labels.filter((label) => !served.has(label));
  if (unknown.length > 0) out.note(`no registered pool serves ${unknown.join(', ')} at the moment; waiting for one`);
}

/**
 * Waits until the request is fulfilled, prints each of its states, and locks the nodes. Deletes the request in any
 * case.
 */
async function takeNodes(
  { out, interrupted }: StoreContext,
  request: SubmittedRequest,
  { timeout }: RequestOptions,
): Promise<Lease> {
  const signal = interrupted;
  try {
    let noted = '';
    const limits = { signal, ...(timeout === undefined ? {} : { timeoutMs: timeout * 1000 }) };
    for await (const { state, declinedBy } of request.progress(limits)) {
      const text = declinedBy.length === 0 ? state : `${state}, declined by ${declinedBy.join(', ')}`;
      if (text !== noted) out.note(`request ${request.id}: ${text}`);
      noted = text;
    }
    return await request.take({ signal, timeoutMs: NODE_LOCK_TIMEOUT_MS });
  } finally {
    await request.cancel();
  }
}

const REFUSALS = [RequestFailedError, RequestRemovedError, NodeNotReadyError, LeaseLostError];

/** Converts foreseen outcomes to refusals, which are no failures of the program. */
function refusalOf(error: unknown): unknown {
  if (error instanceof RequestTimeoutError)
    return new RefusedError(`${error.message}; it is withdrawn`, { cause: error });
  return isError(error) && REFUSALS.some((type) => error instanceof type)
    ? new RefusedError(error.message, { cause: error })
    : error;
}

async function printNodes({ out, clock, store }: StoreContext, { nodes }: Lease, format: ListFormat): Promise<void> {
  const entries = await Promise.all(nodes.map(async ({ id }) => store.nodes.get(id) ?? (await store.nodes.read(id))));
  const found = entries.filter((entry): entry is NodeEntry => entry !== undefined);
  printList(out, nodeListOf(found, { columns: COLUMNS, now: clock.now() }), format);
}

/** Holds the nodes. Rejects if the session that has the locks is lost. */
async function holdNodes(
  { out, clock, interrupted }: StoreContext,
  { lost }: Lease,
  seconds: number | undefined,
): Promise<void> {
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
  lost.throwIfAborted();
}
