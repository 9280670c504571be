/** Acquires free locks in one transaction, so that a failed attempt leaves no contender. */

import type { CallOptions, CreateOptions, Session, TransactionOp, TransactionResult, ZooKeeper } from './api.js';
import { parentPath } from './client/paths.js';
import { OutcomeUnknownError, ZooKeeperError } from './errors.js';
import type { ContenderRemovals } from './contender-lock.js';
import { ensurePath } from './ensure-path.js';

/** One lock to acquire. `exists` is the current assumption about its directory. */
interface LockAttempt {
  readonly path: string;
  readonly prefix: string;
  exists: boolean;
}

interface TransactionLockOptions extends CallOptions {
  readonly before?: readonly TransactionOp[];
  readonly after?: readonly TransactionOp[];
}

export interface AcquiredLocks {
  readonly session: Session;
  /** Paths of the contenders, in the order of the locks. */
  readonly contenders: readonly string[];
  readonly before: readonly TransactionResult[];
  readonly after: readonly TransactionResult[];
}

/** Attempts before a lock counts as contended, because other clients keep creating and deleting its directory. */
const MAX_ATTEMPTS = 5;

const CONTENDER: CreateOptions = { mode: 'ephemeral-sequential' };

/** Implements `LockRecipe.tryAcquireAll`. Resolves with undefined if one of the locks is contended. */
export async function tryAcquireLocks(
  zk: ZooKeeper,
  removals: ContenderRemovals,
  locks: readonly LockAttempt[],
  data: Uint8Array,
  options: TransactionLockOptions,
): Promise<AcquiredLocks | undefined> {
  for (let count = 0; count < MAX_ATTEMPTS; count++) {
    const session = zk.session?.confirmed === true ? zk.session : await zk.connected(options);
    const plan = new Plan(locks, data, options);
    let results: readonly TransactionResult[];
    try {
      results = await zk.transaction(plan.ops, options);
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
      if (error.code === 'outcome-unknown') removeContenders(removals, locks);
      const diagnosis = plan.diagnose(error);
      if (diagnosis === 'contended') return undefined;
      if (diagnosis === 'failed') throw plan.rebased(error);
      await applyCorrection(zk, diagnosis, options);
      if (locks.length > 1 && (await refreshDirectories(zk, locks, options))) return undefined;
      continue;
    }
    const acquired = plan.read(session, results);
    if (zk.session === session) return acquired;
    throw sessionChanged(zk, removals, acquired);
  }
  return undefined;
}

/** A wrong assumption about the directory of a lock. */
interface Correction {
  readonly lock: LockAttempt;
  readonly reason: 'missing' | 'exists' | 'no-parent';
}

/** The operations of one attempt, with the role of each. */
class Plan {
  readonly ops: readonly TransactionOp[];
  /** The lock and the role of each lock operation, in order. */
  private readonly steps: { readonly lock: LockAttempt; readonly action: 'delete' | 'create' | 'contend' }[] = [];
  private readonly before: readonly TransactionOp[];
  private readonly after: readonly TransactionOp[];

  constructor(locks: readonly LockAttempt[], data: Uint8Array, { before = [], after = [] }: TransactionLockOptions) {
    this.before = before;
    this.after = after;
    const ops = [...before];
    for (const lock of locks) {
      if (lock.exists) {
        ops.push({ type: 'delete', path: lock.path });
        this.steps.push({ lock, action: 'delete' });
      }
      ops.push({ type: 'create', path: lock.path });
      this.steps.push({ lock, action: 'create' });
      ops.push({ type: 'create', path: `${lock.path}/${lock.prefix}`, data, options: CONTENDER });
      this.steps.push({ lock, action: 'contend' });
    }
    ops.push(...after);
    this.ops = ops;
  }

  /** Returns the meaning of a failed transaction. */
  diagnose({ code, operationIndex }: ZooKeeperError): 'contended' | 'failed' | Correction {
    const step = operationIndex === undefined ? undefined : this.steps[operationIndex - this.before.length];
    if (step === undefined) return 'failed';
    const { lock, action } = step;
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
  rebased(error: ZooKeeperError): ZooKeeperError {
    const { operationIndex: index } = error;
    const behind = this.before.length + this.steps.length;
    if (index === undefined || index < this.before.length) return error;
    const rebased = index < behind ? undefined : index - this.steps.length;
    const { code, message, operation, path, serverCode } = error;
    const details = { operation, path, serverCode, operationIndex: rebased, cause: error };
    const copy: unknown = Reflect.construct(error.constructor, [code, message, details]);
    return copy instanceof ZooKeeperError ? copy : error;
  }

  read(session: Session, results: readonly TransactionResult[]): AcquiredLocks {
    const contenders: string[] = [];
    let index = this.before.length;
    for (const { action } of this.steps) {
      const result = results[index];
      if (action === 'contend' && result?.type === 'create') contenders.push(result.path);
      index++;
    }
    return {
      session,
      contenders,
      before: results.slice(0, this.before.length),
      after: results.slice(results.length - this.after.length),
    };
  }
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
function sessionChanged(zk: ZooKeeper, removals: ContenderRemovals, acquired: AcquiredLocks): OutcomeUnknownError {
  const { session } = zk;
  if (session !== undefined) for (const contender of acquired.contenders) void removals.remove(contender, session);
  const cause: unknown = acquired.session.lost.reason;
  const message =
    'the session was lost while locks were acquired; the transaction was applied, but the locks are released';
  return new OutcomeUnknownError('outcome-unknown', message, { operation: 'multi', cause });
}
