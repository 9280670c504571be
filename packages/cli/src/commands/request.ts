/** `nodepool request LABEL...`: requests nodes, holds them for a time, and returns them. */

import { sleep, untilAborted } from '@nodepool/core';
import { openRequestor, type AcquireOptions, type Lease, type RequestSpec } from '@nodepool/requestor';
import { nodeListOf, type NodeEntry } from '@nodepool/store';
import type { ListFormat, StoreContext } from '../command-context.js';
import { JsonEvents, noteInterruption, ProgressNotes, refusalOf } from '../lease-reports.js';
import { explainFailure } from '../explain-failure.js';
import { printList } from '../print-list.js';
import type { Streams } from '../process-io.js';

export interface WantedNodes {
  /** 0 to 999; lower values are served first. */
  readonly priority: number;
  readonly tenant: string | undefined;
  /** Limits the request to nodes of this provider. */
  readonly provider: string | undefined;
  /** Latest useful time of the fulfilment, unix seconds. */
  readonly startBy: number | undefined;
}

export interface RequestOptions extends WantedNodes {
  readonly count: number;
  /** Seconds to wait for the nodes; undefined: no limit. */
  readonly timeout: number | undefined;
  /** Seconds to hold the nodes; undefined: until interrupted. */
  readonly hold: number | undefined;
  /** Holds the nodes until stdin ends. */
  readonly untilEof: boolean;
  /** Waits for the deletion of the returned nodes. */
  readonly wait: boolean;
  readonly format: ListFormat;
}

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

/** Returns the request for `count` nodes of each label. */
export function requestSpec(
  labels: readonly string[],
  count: number,
  { priority, tenant, provider, startBy }: WantedNodes,
): RequestSpec {
  return {
    labels: labels.flatMap((label) => Array.from({ length: count }, () => label)),
    priority,
    tenant: tenant ?? null,
    provider: provider ?? null,
    ...(startBy === undefined ? {} : { data: { 'start-by': startBy } }),
  };
}

/**
 * Resolves once the nodes were returned and, with `wait`, deleted. An interruption ends the wait for nodes (rejects) or
 * the hold (returns the nodes), but not the wait for their deletion. Rejects with `CommandError` if there are no nodes,
 * or if their locks are lost.
 */
export async function request(
  context: StoreContext,
  { stdin }: Streams,
  labels: readonly string[],
  options: RequestOptions,
): Promise<void> {
  const { store, clock, random, log, out } = context;
  const requestor = openRequestor(store.zooKeeper, { name: 'nodepool-cli', clock, random, log });
  const events = options.format === 'json' ? new JsonEvents(out, clock) : undefined;
  const notes = new ProgressNotes(out);
  const eof = options.untilEof ? endOf(stdin) : undefined;
  const ended = eof === undefined ? context.interrupted : AbortSignal.any([context.interrupted, eof.signal]);
  try {
    const limits: AcquireOptions = {
      signal: ended,
      ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout * 1000 }),
      onProgress: (progress) => {
        notes.note(progress);
        events?.progress(progress);
      },
    };
    const lease = await requestor.acquire(requestSpec(labels, options.count, options), limits);
    try {
      if (events === undefined) await printNodes(context, lease);
      else events.leased(lease.nodes);
      lease.onInterruption((interruption) => {
        noteInterruption(out, interruption);
        events?.interrupted(interruption);
      });
      await holdNodes(context, lease, ended, options);
    } finally {
      await lease.return();
    }
    events?.happened('returned');
    out.note('the nodes are returned');
    if (options.wait) {
      out.note('waiting until launchers have deleted the nodes');
      await lease.deleted();
      events?.happened('deleted');
      out.note('all nodes are deleted');
    }
  } catch (error) {
    events?.failed(refusalOf(error, notes.reasons));
    throw refusalOf(await explainFailure(context, error), notes.reasons);
  } finally {
    eof?.stop();
    await requestor.close();
  }
}

/** Returns a signal that aborts at the end of a stream, whose data is ignored. */
function endOf(stream: Streams['stdin']): { readonly signal: AbortSignal; readonly stop: () => void } {
  const controller = new AbortController();
  const onEnd = (): void => controller.abort(new Error('standard input has ended'));
  for (const event of ['end', 'close', 'error']) stream.once(event, onEnd);
  stream.resume();
  return { signal: controller.signal, stop: () => void stream.destroy() };
}

async function printNodes({ out, clock, store }: StoreContext, { nodes }: Lease): Promise<void> {
  const entries = await Promise.all(nodes.map(({ id }) => store.nodes.read(id)));
  const found = entries.filter((entry): entry is NodeEntry => entry !== undefined);
  printList(out, nodeListOf(found, { columns: COLUMNS, now: clock.now() }), 'pretty');
}

/** Holds the nodes. Rejects if the session that has the locks is lost. */
async function holdNodes(
  { out, clock }: StoreContext,
  { lost }: Lease,
  ended: AbortSignal,
  { hold, untilEof }: RequestOptions,
): Promise<void> {
  const end = AbortSignal.any([ended, lost]);
  const limit = hold === undefined ? 'until interrupted (Ctrl-C)' : `for ${hold} s`;
  out.note(`holding the nodes ${limit}${untilEof ? ', or until standard input ends' : ''}`);
  try {
    if (hold === undefined) await untilAborted(new Promise<never>(() => undefined), end);
    else await sleep(clock, hold * 1000, end);
  } catch (error) {
    if (!end.aborted) throw error;
  }
  lost.throwIfAborted();
}
