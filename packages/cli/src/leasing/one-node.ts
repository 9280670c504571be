/** Leases of one node for callers that start a new process for each step: CI runners, and orchestrators of runners. */

import { reasonOf, sleep, untilAborted, type Clock } from '@nodepool/core';
import type { NodeTarget, SshClient } from '@nodepool/daemon/ssh';
import {
  GatewayUnreachableError,
  LeaseRequestError,
  type LeaseClient,
  type LeaseDocument,
  type LeaseOutcome,
  type NewLease,
} from '@nodepool/requestor/http';
import { CommandError } from '../command-context.js';
import { leasedTarget } from '../gateway-access.js';
import { LeaseKeeper, lossOf } from './lease-keeper.js';

/** Limit of the leases with one key prefix, one after the other. */
const MAX_ATTEMPTS = 100;
/** Time (ms) between attempts while the token's nodes are all in use. */
const QUOTA_RETRY_MS = 10_000;
/** Time (ms) after which another gateway knows a new lease too. */
const SETTLE_MS = 2000;
/** Longest comment of a release. */
const COMMENT_LENGTH = 1000;

export interface LeasingIo {
  readonly client: LeaseClient;
  readonly clock: Clock;
  /** Tells people a fact. */
  readonly note: (text: string) => void;
}

/** A lease that has a name, and its idempotency keys, which begin with the name. */
export type NamedLease = NewLease & { readonly name: string };

/** Resolves with a lease that waits or is ready. An attempt after a released lease creates another one. */
export async function createLease(io: LeasingIo, wanted: NamedLease, signal: AbortSignal): Promise<LeaseDocument> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS;) {
    try {
      const lease = await io.client.create(wanted, { key: `${wanted.name}/${attempt}`, signal });
      if (isOpen(lease)) return lease;
      attempt++;
    } catch (error) {
      const code = error instanceof LeaseRequestError ? error.code : '';
      if (code === 'key-reused') attempt++;
      else if (code !== 'quota' && !isUnavailable(error)) throw error;
      else {
        io.note(`waiting: ${reasonOf(error)}`);
        await sleep(io.clock, QUOTA_RETRY_MS, signal);
      }
    }
  }
  throw new CommandError(`${wanted.name} has used ${MAX_ATTEMPTS} leases`);
}

/** Resolves with the lease once it has its node, however long the gateway cannot be reached. */
export async function untilReady(io: LeasingIo, id: string, signal: AbortSignal): Promise<LeaseDocument> {
  let said = '';
  for (;;) {
    try {
      return await io.client.ready(id, {
        signal,
        onChange: ({ phase, reasons }) => {
          const text = `lease ${id}: ${[phase, ...reasons].join('; ')}`;
          if (text !== said) io.note(text);
          said = text;
        },
      });
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      io.note(reasonOf(error));
    }
  }
}

/** Repeats `work` for `seconds` while the gateway cannot be reached, such as for the time that a lease lives. */
export async function whileUnavailable<T>(
  { clock, note }: LeasingIo,
  seconds: number,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const end = clock.monotonic() + seconds * 1000;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || signal.aborted || clock.monotonic() >= end) throw error;
      note(`waiting: ${reasonOf(error)}`);
    }
  }
}

/** Returns true if the gateway, or ZooKeeper behind it, cannot be reached. The client has already waited a while. */
function isUnavailable(error: unknown): boolean {
  return error instanceof GatewayUnreachableError || (error instanceof LeaseRequestError && error.status >= 500);
}

/** The login of a leased node. */
export interface NodeLogin {
  readonly ssh: SshClient;
  readonly user: string | undefined;
}

/** Keeps a lease until it has its node and `work` on that has ended; the loss of the node ends `work`. */
export async function withReadyNode<T>(
  io: LeasingIo,
  lease: LeaseDocument,
  { ssh, user }: NodeLogin,
  signal: AbortSignal,
  work: (target: NodeTarget) => Promise<T>,
): Promise<T> {
  const keeper = new LeaseKeeper(io.client, lease, io.clock);
  try {
    const stop = AbortSignal.any([signal, keeper.lost]);
    const target = targetOf(await untilReady(io, lease.id, stop), user);
    ssh.trust(target);
    stop.addEventListener('abort', () => ssh.close());
    return await untilAborted(work(target), stop);
  } finally {
    await keeper.stop();
    ssh.close();
  }
}

/** Returns the login of the lease's node. Throws `CommandError` if that is lost. */
export function targetOf(lease: LeaseDocument, user: string | undefined): NodeTarget {
  const loss = lossOf(lease);
  if (loss !== undefined) throw new CommandError(loss);
  const [node] = lease.nodes;
  if (node === undefined) throw new CommandError(`lease ${lease.id} has no node`);
  return leasedTarget(node, user);
}

/** Resolves with the leases of this name, newest first. A new lease may need a moment to be known everywhere. */
export async function leasesNamed({ client, clock }: LeasingIo, name: string): Promise<readonly LeaseDocument[]> {
  const found: LeaseDocument[] = [];
  for (let looks = 1; found.length === 0 && looks <= 2; looks++) {
    if (looks > 1) await sleep(clock, SETTLE_MS);
    for await (const lease of client.list({ name })) if (lease.name === name) found.push(lease);
  }
  return found;
}

/** Releases those of the leases that wait or are ready. */
export async function releaseAll(
  { client }: LeasingIo,
  leases: readonly LeaseDocument[],
  outcome: LeaseOutcome,
  comment?: string,
): Promise<void> {
  for (const lease of leases) {
    if (!isOpen(lease)) continue;
    const why = comment === undefined ? {} : { comment: comment.slice(0, COMMENT_LENGTH) };
    await client.release(lease.id, { outcome, ...why });
  }
}

/** Returns true if the lease waits for its node or has it. */
export function isOpen({ state }: LeaseDocument): boolean {
  return state === 'waiting' || state === 'ready';
}
