/**
 * Transactions on records whose locks this process holds: fenced by the locks, versioned, announced to the caches, and
 * with a definite outcome while the session lives.
 */

import {
  isZooKeeperError,
  type CallOptions,
  type TransactionOp,
  type TransactionResult,
  type WriteExpectation,
  type ZooKeeper,
} from '@nodepool/zookeeper';
import type { Caches, Written } from '../tables/caches.js';
import { LostOwnershipError } from '../errors.js';
import type { AnyRecordHandle, Step } from './record-handle.js';
import { checkTransactionSize } from './transaction-size.js';

/** The operations of a transaction, each with its step. */
interface Plan {
  readonly steps: readonly Step[];
  readonly ops: TransactionOp[];
  readonly owners: Step[];
  readonly paths: string[];
}

/**
 * Applies all steps in one transaction, followed by further operations, whose errors reach the caller. If the answer is
 * lost, asks the server for the outcome, so an abort by `options.signal` or a time-out leaves no doubt either: it
 * resolves if the transaction was applied.
 *
 * Rejects with `LostOwnershipError` if a lock or a version is no longer valid, or if the session was lost before the
 * outcome was known. The record may then hold the written data, but this process does not own it any more.
 */
export async function commit(
  zooKeeper: ZooKeeper,
  caches: Caches,
  steps: readonly Step[],
  options?: CallOptions,
  further: readonly TransactionOp[] = [],
): Promise<void> {
  const plan = planOf(steps);
  plan.ops.push(...further);
  checkTransactionSize(plan.ops);
  for (;;) {
    for (const { record } of steps) throwIfLost(record);
    const expectation = caches.expect(plan.paths);
    try {
      applied(plan, await zooKeeper.transaction(plan.ops, options), expectation);
      return;
    } catch (error) {
      expectation.unknown();
      if (!isZooKeeperError(error, 'outcome-unknown')) throw ownershipError(plan, error);
      if (await wasApplied(zooKeeper, steps, error)) {
        appliedUnseen(steps);
        return;
      }
      options?.signal?.throwIfAborted();
    }
  }
}

/** Returns true if an error says that the known state of a record is outdated. */
export function isStale(error: unknown): boolean {
  return isZooKeeperError(error, 'bad-version') || isZooKeeperError(error, 'no-node');
}

function planOf(steps: readonly Step[]): Plan {
  const ops: TransactionOp[] = [];
  const owners: Step[] = [];
  const paths: string[] = [];
  for (const step of steps) {
    const { record, write, release } = step;
    if (!release) ops.push(record.lock.fence);
    if (write === 'check') ops.push({ type: 'check', path: record.path, version: record.version });
    else if (write !== 'none') {
      ops.push({ type: 'set', path: record.path, data: write.data, version: record.version });
      paths.push(record.path);
    }
    // Released after the record is written, so that the next lock holder reads the new record.
    if (release) ops.push(record.lock.releaseOp);
    while (owners.length < ops.length) owners.push(step);
  }
  return { steps, ops, owners, paths };
}

/** Applies the server's answer to the caches before the caller continues. */
function applied(plan: Plan, results: readonly TransactionResult[], expectation: WriteExpectation): void {
  const written: Written[] = [];
  results.forEach((result, index) => {
    const step = plan.owners[index];
    if (result.type !== 'set' || step === undefined || typeof step.write === 'string') return;
    step.write.written(result.stat.version);
    const node = { data: step.write.data, stat: result.stat };
    written.push({ path: step.record.path, node });
  });
  for (const { record, release } of plan.steps) if (release) record.lock.released();
  expectation.applied(written);
}

/**
 * Updates versions after a transaction that was applied but whose answer was lost: each write increments the version.
 * The caches read the data themselves.
 */
function appliedUnseen(steps: readonly Step[]): void {
  for (const { record, write, release } of steps) {
    if (typeof write !== 'string') write.written(record.version + 1);
    if (release) record.lock.released();
  }
}

/** Errors of a read that is repeated. The session of a persistent lock may be lost while the lock is held. */
const ANSWER_LOST = ['timeout', 'connection-lost', 'session-lost'] as const;

/**
 * Asks the server for the outcome of a write whose answer was lost (`cause`), repeatedly while the lock is held; then
 * rejects with `LostOwnershipError`.
 */
export async function askUntilLost<T>(
  record: AnyRecordHandle,
  cause: unknown,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  for (;;) {
    throwIfLost(record, cause);
    try {
      return await ask(record.lock.lost);
    } catch (error) {
      throwIfLost(record, cause);
      if (!ANSWER_LOST.some((code) => isZooKeeperError(error, code))) throw error;
    }
  }
}

/** Throws `LostOwnershipError` if the lock is known to be lost. */
export function throwIfLost({ path, lock }: Pick<AnyRecordHandle, 'path' | 'lock'>, cause?: unknown): void {
  if (!lock.held) throw new LostOwnershipError(path, cause ?? lock.lost.reason);
}

/** Resolves with true if a transaction whose answer was lost was applied. */
async function wasApplied(zooKeeper: ZooKeeper, steps: readonly Step[], cause: unknown): Promise<boolean> {
  const release = steps.find((step) => step.release);
  if (release !== undefined) {
    const { contender, persistent } = release.record.lock;
    const isReleased = await askUntilLost(release.record, cause, async (signal) => {
      await zooKeeper.sync(contender, { signal });
      return (await zooKeeper.exists(contender, { signal })) === undefined;
    });
    // While the session lives, only this process deletes its ephemeral contender.
    if (!persistent || !isReleased || typeof release.write === 'string') return isReleased;
    if (await askUntilLost(release.record, cause, (signal) => wasWritten(zooKeeper, release, signal, cause)))
      return true;
    throw new LostOwnershipError(release.record.path, cause);
  }
  const write = steps.find((step) => typeof step.write !== 'string');
  // Without a write there is no outcome to determine; the caller repeats the transaction.
  if (write === undefined) return false;
  return askUntilLost(write.record, cause, (signal) => wasWritten(zooKeeper, write, signal, cause));
}

async function wasWritten(
  zooKeeper: ZooKeeper,
  { record, write }: Step,
  signal: AbortSignal,
  cause: unknown,
): Promise<boolean> {
  try {
    await zooKeeper.sync(record.path, { signal });
    const { data, stat } = await zooKeeper.get(record.path, { signal });
    if (stat.version === record.version) return false;
    if (stat.version === record.version + 1 && typeof write !== 'string' && isEqual(data, write.data)) return true;
  } catch (error) {
    if (!isZooKeeperError(error, 'no-node')) throw error;
  }
  throw new LostOwnershipError(record.path, cause);
}

function ownershipError(plan: Plan, error: unknown): unknown {
  const isDurable = plan.steps.every(({ record }) => record.lock.persistent);
  const lost = isStale(error) || (isZooKeeperError(error, 'session-lost') && !isDurable);
  const index = isZooKeeperError(error) ? error.operationIndex : undefined;
  if (!lost || (index !== undefined && index >= plan.owners.length)) return error;
  const owner = index === undefined ? undefined : plan.owners[index];
  return new LostOwnershipError((owner ?? plan.steps[0])?.record.path ?? '', error);
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
