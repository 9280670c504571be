/** Acquires free locks in one transaction, so that a failed attempt leaves no contender. */

import type { CallOptions, CreateOptions, Session, TransactionOp, TransactionResult, ZooKeeper } from './api.js';
import { parentPath } from './client/paths.js';
import { OutcomeUnknownError, ZooKeeperError } from './errors.js';
import type { ContenderRemovals } from './contender-lock.js';
import { ensurePath } from './ensure-path.js';
import type { HeldLock } from './recipes-api.js';

/**
 * One lock to acquire. `exists` is the current assumption about its directory. `isNew`: the same transaction creates
 * the parent of the directory.
 */
interface LockAttempt {
  readonly path: string;
  readonly prefix: string;
  readonly isNew: boolean;
  exists: boolean;
}

interface TransactionLockOptions extends CallOptions {
  /** See `TryLockOptions`. */
  readonly owner?: string;
  readonly before?: readonly TransactionOp[];
  readonly after?: readonly TransactionOp[];
}

/** Makes the lock of a contender. */
type LockFactory = (path: string, contender: string, session: Session) => HeldLock;

export interface AcquiredLocks {
  readonly locks: readonly HeldLock[];
  readonly before: readonly TransactionResult[];
  readonly after: readonly TransactionResult[];
}

/** Attempts before a lock counts as contended, because other clients keep creating and deleting its directory. */
const MAX_ATTEMPTS = 5;

const CONTENDER: CreateOptions = { mode: 'ephemeral-sequential' };
const PERSISTENT_CONTENDER: CreateOptions = { mode: 'persistent-sequential' };
const NONE: readonly TransactionOp[] = [];

/** Implements `LockRecipe.tryAcquireAll`. Resolves with undefined if one of the locks is contended. */
export async function tryAcquireLocks(
  zk: ZooKeeper,
  removals: ContenderRemovals,
  locks: readonly LockAttempt[],
  data: Uint8Array,
  options: TransactionLockOptions,
  lockOf: LockFactory,
): Promise<AcquiredLocks | undefined> {
  const { before = NONE, after = NONE, owner } = options;
  const contender = owner === undefined ? CONTENDER : PERSISTENT_CONTENDER;
  for (let count = 0; count < MAX_ATTEMPTS; count++) {
    const current = zk.session;
    const session = current?.confirmed === true ? current : await zk.connected(options);
    let results: readonly TransactionResult[];
    try {
      results = await zk.transaction(operations(locks, data, contender, before, after), options);
    } catch (error) {
      if (await prepareRetry(zk, removals, locks, error, options)) continue;
      return undefined;
    }
    const contenders = contendersOf(locks, results, before.length);
    if (owner === undefined && zk.session !== session) throw sessionChanged(zk, removals, session, contenders);
    return {
      locks: locks.map(({ path }, index) => lockOf(path, contenders[index] ?? '', session)),
      before: results.slice(0, before.length),
      after: results.slice(results.length - after.length),
    };
  }
  return undefined;
}

/**
 * Corrects the assumptions about the lock directories after a failed transaction. Resolves with false if one of the
 * locks is contended. Rejects if the transaction failed for another reason.
 */
async function prepareRetry(
  zk: ZooKeeper,
  removals: ContenderRemovals,
  locks: readonly LockAttempt[],
  error: unknown,
  options: TransactionLockOptions,
): Promise<boolean> {
  if (!(error instanceof ZooKeeperError)) throw error;
  // Contenders of an owner remain, because a later attempt of the owner adopts them.
  if (error.code === 'outcome-unknown' && options.owner === undefined) removeContenders(removals, locks);
  const steps = stepsOf(locks);
  const countBefore = options.before?.length ?? 0;
  const diagnosis = diagnose(error, steps, countBefore);
  if (diagnosis === 'contended') return false;
  if (diagnosis === 'failed') throw rebased(error, steps.length, countBefore);
  await applyCorrection(zk, diagnosis, options);
  return locks.length === 1 || !(await refreshDirectories(zk, locks, options));
}

/** A wrong assumption about the directory of a lock. */
interface Correction {
  readonly lock: LockAttempt;
  readonly reason: 'missing' | 'exists' | 'no-parent';
}

/** One operation for a lock, and its role. */
interface LockStep {
  readonly lock: LockAttempt;
  readonly action: 'delete' | 'create' | 'contend';
}

/** Returns the operations of one attempt. Those for the locks have the order of `stepsOf`. */
function operations(
  locks: readonly LockAttempt[],
  data: Uint8Array,
  contender: CreateOptions,
  before: readonly TransactionOp[],
  after: readonly TransactionOp[],
): readonly TransactionOp[] {
  const ops = [...before];
  locks.forEach(({ path, prefix, exists }) => {
    if (exists) ops.push({ type: 'delete', path });
    ops.push({ type: 'create', path });
    ops.push({ type: 'create', path: `${path}/${prefix}`, data, options: contender });
  });
  ops.push(...after);
  return ops;
}

/** Returns the steps of the attempt with the present assumptions. */
function stepsOf(locks: readonly LockAttempt[]): readonly LockStep[] {
  return locks.flatMap((lock) => {
    const steps: LockStep[] = lock.exists ? [{ lock, action: 'delete' }] : [];
    return [...steps, { lock, action: 'create' }, { lock, action: 'contend' }];
  });
}

/** Returns the meaning of a failed transaction. */
function diagnose(
  { code, operationIndex }: ZooKeeperError,
  steps: readonly LockStep[],
  countBefore: number,
): 'contended' | 'failed' | Correction {
  const step = operationIndex === undefined ? undefined : steps[operationIndex - countBefore];
  if (step === undefined) return 'failed';
  const { lock, action } = step;
  if (lock.isNew) return 'failed';
  if (action === 'delete') {
    if (code === 'not-empty') return 'contended';
    if (code === 'no-node') return { lock, reason: 'missing' };
  } else if (action === 'create') {
    if (code === 'node-exists') return { lock, reason: 'exists' };
    if (code === 'no-node') return { lock, reason: 'no-parent' };
  }
  return 'failed';
}

/** Returns the error with an `operationIndex` that counts the caller's operations only. */
function rebased(error: ZooKeeperError, countSteps: number, countBefore: number): ZooKeeperError {
  const { operationIndex: index } = error;
  if (index === undefined || index < countBefore) return error;
  const operationIndex = index < countBefore + countSteps ? undefined : index - countSteps;
  const { code, message, operation, path, serverCode } = error;
  const details = { operation, path, serverCode, operationIndex, cause: error };
  const copy: unknown = Reflect.construct(error.constructor, [code, message, details]);
  return copy instanceof ZooKeeperError ? copy : error;
}

/** Returns the paths of the contenders that a transaction created, in the order of the locks. */
function contendersOf(
  locks: readonly LockAttempt[],
  results: readonly TransactionResult[],
  countBefore: number,
): readonly string[] {
  let next = countBefore;
  return locks.map(({ exists }) => {
    next += exists ? 3 : 2;
    const result = results[next - 1];
    return result?.type === 'create' ? result.path : '';
  });
}

async function applyCorrection(zk: ZooKeeper, { lock, reason }: Correction, options: CallOptions): Promise<void> {
  if (reason === 'no-parent') {
    const parent = parentPath(lock.path);
    if (parent !== undefined && parent !== '/') await ensurePath(zk, parent, callOptions(options));
  }
  lock.exists = reason === 'exists';
}

/** Updates all assumptions after one was wrong. Returns true if one of the locks is contended. */
async function refreshDirectories(
  zk: ZooKeeper,
  locks: readonly LockAttempt[],
  options: CallOptions,
): Promise<boolean> {
  const stats = await Promise.all(locks.map(({ path }) => zk.exists(path, callOptions(options))));
  locks.forEach((lock, index) => {
    lock.exists = stats[index] !== undefined;
  });
  return stats.some((stat) => stat !== undefined && stat.numChildren > 0);
}

function callOptions({ signal, timeoutMs }: CallOptions): CallOptions {
  return { ...(signal === undefined ? {} : { signal }), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

/** Deletes the contenders of a transaction that may have been applied. */
function removeContenders(removals: ContenderRemovals, locks: readonly LockAttempt[]): void {
  for (const { path, prefix } of locks) void removals.removeByPrefix(path, prefix);
}

/** Releases locks that a transaction acquired in a session that is not the current one. */
function sessionChanged(
  zk: ZooKeeper,
  removals: ContenderRemovals,
  before: Session,
  contenders: readonly string[],
): OutcomeUnknownError {
  const { session } = zk;
  if (session !== undefined) for (const contender of contenders) void removals.remove(contender, session);
  const cause: unknown = before.lost.reason;
  const message =
    'the session was lost while locks were acquired; the transaction was applied, but the locks are released';
  return new OutcomeUnknownError('outcome-unknown', message, { operation: 'multi', cause });
}
