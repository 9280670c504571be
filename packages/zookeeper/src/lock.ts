/** The exclusive lock, compatible with kazoo's. See `LockRecipe` for the contract. */

import { hostname } from 'node:os';
import { randomBytes } from 'node:crypto';
import type { CallOptions, Session, TransactionOp, TransactionResult, ZooKeeper } from './api.js';
import { systemClock, type Clock } from './clock.js';
import { isZooKeeperError, NoNodeError, SessionLostError } from './errors.js';
import { adoptContender } from './adoption.js';
import { ContenderLock, ContenderRemovals, findContender, SessionLocks } from './contender-lock.js';
import { contenderPrefix, sortedContenders } from './lock-names.js';
import { tryAcquireLocks } from './lock-transaction.js';
import { ensurePath } from './ensure-path.js';
import type { AdoptOptions, HeldLock, LockOptions, LockRecipe, TryLockOptions } from './recipes-api.js';
import { Deadline, untilAborted } from './deadline.js';
import { watchContender } from './contender-watch.js';
import { warnProcess } from './warn.js';

export interface LockRecipeOptions {
  /** Source of the unique part of a contender's name, 32 hexadecimal digits. Default: random bytes. */
  readonly random?: { uuidHex(): string };
  /** Data of contenders, unless a call has its own. Default: `<host>-<pid>`, as in kazoo. */
  readonly identifier?: string;
  /** Default: the real time. */
  readonly clock?: Clock;
  /** Called when the deletion of a contender failed; it is retried. Default: a process warning. */
  readonly onWarning?: (error: Error) => void;
}

/** The lock recipe, with its background work visible. */
export interface Locks extends LockRecipe {
  /** Number of contenders being deleted, after a release or a failed attempt. */
  readonly removals: number;
  /** Resolves once `removals` is 0. */
  idle(): Promise<void>;
}

/** Creates the lock recipe of a client. Use one instance for all locks of the client. */
export function lockRecipe(zk: ZooKeeper, options: LockRecipeOptions = {}): Locks {
  return new ZooKeeperLocks(zk, options);
}

/** A contender of this client, and the session that owns it. */
interface OwnContender {
  readonly path: string;
  readonly session: Session;
}

class ZooKeeperLocks implements Locks {
  private readonly clock: Clock;
  /** Data of the contenders whose call has no identifier of its own. */
  private readonly defaultData: Uint8Array;
  private readonly sessions = new SessionLocks();
  private readonly contenderRemovals: ContenderRemovals;

  constructor(
    private readonly zk: ZooKeeper,
    private readonly options: LockRecipeOptions,
  ) {
    this.clock = options.clock ?? systemClock;
    this.defaultData = Buffer.from(options.identifier ?? `${hostname()}-${process.pid}`);
    this.contenderRemovals = new ContenderRemovals(zk, this.clock, options.onWarning ?? warnProcess);
  }

  get removals(): number {
    return this.contenderRemovals.count;
  }

  idle(): Promise<void> {
    return this.contenderRemovals.idle();
  }

  async acquire(path: string, options: LockOptions & CallOptions = {}): Promise<HeldLock> {
    const deadline = new Deadline(this.clock, `lock ${path}`, options);
    try {
      const contender = await this.createContender(path, this.dataOf(options), deadline);
      try {
        await this.waitForTurn(path, contender, deadline);
      } catch (error) {
        void this.contenderRemovals.remove(contender.path, contender.session);
        throw error;
      }
      return this.held(path, contender.path, contender.session, options);
    } catch (error) {
      throw deadline.reasonOr(error);
    } finally {
      deadline.end();
    }
  }

  async tryAcquire(
    path: string,
    options: TryLockOptions & CallOptions & { readonly exists?: boolean; readonly ops?: readonly TransactionOp[] } = {},
  ): Promise<{ readonly lock: HeldLock; readonly results: readonly TransactionResult[] } | undefined> {
    // `before`, so that a failing operation is found first and no ancestor of the lock is created for a deleted record.
    const { ops = [], exists, ...rest } = options;
    const locks = [exists === undefined ? { path } : { path, exists }];
    const acquired = await this.tryAcquireAll(locks, { before: ops, ...rest });
    const lock = acquired?.locks[0];
    return acquired === undefined || lock === undefined ? undefined : { lock, results: acquired.before };
  }

  tryAcquireAll(
    locks: Parameters<LockRecipe['tryAcquireAll']>[0],
    options: TryLockOptions &
      CallOptions & { readonly before?: readonly TransactionOp[]; readonly after?: readonly TransactionOp[] } = {},
  ): Promise<
    | {
        readonly locks: readonly HeldLock[];
        readonly before: readonly TransactionResult[];
        readonly after: readonly TransactionResult[];
      }
    | undefined
  > {
    const { owner } = options;
    if (owner === '') throw new RangeError('the owner of a persistent lock must have a name');
    const attempts = locks.map(({ path, isNew = false, exists = !isNew, uniqueHex }) => ({
      path,
      exists,
      isNew,
      prefix: uniqueHex === undefined ? this.newPrefix() : contenderPrefix(uniqueHex),
    }));
    return tryAcquireLocks(
      this.zk,
      this.contenderRemovals,
      attempts,
      owner === undefined ? this.dataOf(options) : Buffer.from(owner),
      options,
      (path, contender, session) =>
        owner === undefined
          ? this.held(path, contender, session, options)
          : this.heldPersistently(path, contender, session, options),
    );
  }

  async adopt(path: string, owner: string, options: AdoptOptions & CallOptions = {}): Promise<HeldLock | undefined> {
    const adopted = await adoptContender(this.zk, path, owner, options);
    if (adopted === undefined) return undefined;
    const session = await this.zk.connected(options);
    return this.heldPersistently(path, adopted.path, session, options, adopted.version);
  }

  private newPrefix(): string {
    return contenderPrefix(this.options.random?.uuidHex() ?? randomHex());
  }

  private dataOf(options: LockOptions): Uint8Array {
    return options.identifier === undefined ? this.defaultData : Buffer.from(options.identifier);
  }

  private held(path: string, contender: string, session: Session, options: LockOptions): HeldLock {
    return this.watched(new ContenderLock(path, contender, session, this.contenderRemovals, this.sessions), options);
  }

  private heldPersistently(
    path: string,
    contender: string,
    session: Session,
    options: LockOptions,
    version = 0,
  ): HeldLock {
    const lock = new ContenderLock(path, contender, session, this.contenderRemovals, undefined, version);
    return this.watched(lock, options);
  }

  private watched(lock: ContenderLock, options: LockOptions): HeldLock {
    if (options.watchContender === true) watchContender(this.zk, lock, this.clock);
    return lock;
  }

  /** Creates a contender, and the lock directory if it is missing. */
  private async createContender(path: string, data: Uint8Array, deadline: Deadline): Promise<OwnContender> {
    const { options } = deadline;
    for (;;) {
      await this.zk.connected(options);
      const prefix = this.newPrefix();
      try {
        const created = await this.zk.create(`${path}/${prefix}`, data, { ...options, mode: 'ephemeral-sequential' });
        const { session } = this.zk;
        // Otherwise the server deletes the contender with the session that created it.
        if (session?.id === created.stat.ephemeralOwner) return { path: created.path, session };
      } catch (error) {
        if (isZooKeeperError(error, 'no-node')) await ensurePath(this.zk, path, options);
        else if (!isZooKeeperError(error, 'outcome-unknown')) throw error;
        else {
          const found = await this.findAfterUnknownOutcome(path, prefix, deadline);
          if (found !== undefined) return found;
        }
      }
    }
  }

  /** Returns the contender of a creation with an unknown outcome, or undefined if it does not exist. */
  private async findAfterUnknownOutcome(
    path: string,
    prefix: string,
    deadline: Deadline,
  ): Promise<OwnContender | undefined> {
    try {
      deadline.check();
      const found = await findContender(this.zk, path, prefix, deadline.options);
      const { session } = this.zk;
      const stat = found === undefined ? undefined : await this.zk.exists(found, deadline.options);
      return found !== undefined && session?.id === stat?.ephemeralOwner && session !== undefined
        ? { path: found, session }
        : undefined;
    } catch (error) {
      void this.contenderRemovals.removeByPrefix(path, prefix);
      throw error;
    }
  }

  private async waitForTurn(path: string, contender: OwnContender, deadline: Deadline): Promise<void> {
    const own = contender.path.slice(path.length + 1);
    for (;;) {
      const { children } = await this.zk.children(path, deadline.options);
      const queue = sortedContenders(children);
      const position = queue.findIndex(({ name }) => name === own);
      if (contender.session.lost.aborted) throw sessionLost(path, contender.session);
      if (position < 0) {
        const message = `lock ${path}: the contender ${own} was deleted by another client while it waited`;
        throw new NoNodeError('no-node', message, { path: contender.path });
      }
      const predecessor = queue[position - 1];
      if (predecessor === undefined) return;
      await this.waitForChange(`${path}/${predecessor.name}`, contender.session, deadline);
    }
  }

  /** Resolves when the predecessor changes or is deleted, at once if it does not exist. */
  private async waitForChange(predecessor: string, session: Session, deadline: Deadline): Promise<void> {
    let notify = (): void => undefined;
    const changed = new Promise<void>((resolve) => {
      notify = resolve;
    });
    try {
      // A read of a znode that does not exist sets no watch. A watch from `exists` would stay for the session.
      await this.zk.get(predecessor, { ...deadline.options, watch: () => notify() });
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return;
      throw error;
    }
    await untilAborted(changed, [session.lost, deadline.signal]);
  }
}

function sessionLost(path: string, session: Session): SessionLostError {
  const message = `lock ${path}: the session was lost while waiting for the lock`;
  return new SessionLostError('session-lost', message, { path, cause: session.lost.reason });
}

function randomHex(): string {
  return randomBytes(16).toString('hex');
}
