/** The exclusive lock that kazoo's clients understand; see `LockRecipe` for what it promises. */

import { hostname } from 'node:os';
import { randomBytes } from 'node:crypto';
import type { CallOptions, Session, TransactionOp, TransactionResult, ZooKeeper } from './api.js';
import { systemClock, type Clock } from './clock.js';
import { isZooKeeperError, NoNodeError, SessionLostError } from './errors.js';
import { ContenderLock, ContenderRemovals, findContender, SessionLocks } from './contender-lock.js';
import { contenderPrefix, sortedContenders } from './lock-names.js';
import { tryAcquireLocks } from './lock-transaction.js';
import { ensurePath } from './ensure-path.js';
import type { HeldLock, LockOptions, LockRecipe } from './recipes-api.js';
import { Deadline, untilAborted } from './deadline.js';
import { watchContender } from './contender-watch.js';
import { warnProcess } from './warn.js';

export interface LockRecipeOptions {
  /** Where the unique part of a contender's name comes from: 32 hexadecimal digits. Default: random bytes. */
  readonly random?: { uuidHex(): string };
  /** Written into contenders unless a call says otherwise. Default: `<host>-<pid>`, as kazoo's clients do. */
  readonly identifier?: string;
  /** Default: the real time. */
  readonly clock?: Clock;
  /** Told why a contender could not be removed yet; it is tried again. Default: a warning of the process. */
  readonly onWarning?: (error: Error) => void;
}

/** The lock recipe with its background work in view. */
export interface Locks extends LockRecipe {
  /** Contenders that are being removed: of releases, and of attempts that failed. */
  readonly removals: number;
  /** Resolves once there are none. */
  idle(): Promise<void>;
}

/** Locks on a client. Make one for all the locks of a client. */
export function lockRecipe(zk: ZooKeeper, options: LockRecipeOptions = {}): Locks {
  return new ZooKeeperLocks(zk, options);
}

/** A contender of ours, with the session that it lives in. */
interface OwnContender {
  readonly path: string;
  readonly session: Session;
}

class ZooKeeperLocks implements Locks {
  private readonly clock: Clock;
  private readonly identifier: string;
  private readonly sessions = new SessionLocks();
  private readonly background: ContenderRemovals;

  constructor(
    private readonly zk: ZooKeeper,
    private readonly options: LockRecipeOptions,
  ) {
    this.clock = options.clock ?? systemClock;
    this.identifier = options.identifier ?? `${hostname()}-${process.pid}`;
    this.background = new ContenderRemovals(zk, this.clock, options.onWarning ?? warnProcess);
  }

  get removals(): number {
    return this.background.count;
  }

  idle(): Promise<void> {
    return this.background.idle();
  }

  async acquire(path: string, options: LockOptions & CallOptions = {}): Promise<HeldLock> {
    const deadline = new Deadline(this.clock, `lock ${path}`, options);
    try {
      const contender = await this.createContender(path, this.dataOf(options), deadline);
      try {
        await this.waitForTurn(path, contender, deadline);
      } catch (error) {
        void this.background.remove(contender.path, contender.session);
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
    options: LockOptions & CallOptions & { readonly exists?: boolean; readonly ops?: readonly TransactionOp[] } = {},
  ): Promise<{ readonly lock: HeldLock; readonly results: readonly TransactionResult[] } | undefined> {
    // What the operations are about may be gone, and the parents of the lock with it: then nothing must be made.
    const { ops = [], exists, ...rest } = options;
    const locks = [exists === undefined ? { path } : { path, exists }];
    const taken = await this.tryAcquireAll(locks, { ...rest, before: ops });
    const lock = taken?.locks[0];
    return taken === undefined || lock === undefined ? undefined : { lock, results: taken.before };
  }

  async tryAcquireAll(
    locks: readonly { readonly path: string; readonly exists?: boolean }[],
    options: LockOptions &
      CallOptions & { readonly before?: readonly TransactionOp[]; readonly after?: readonly TransactionOp[] } = {},
  ): Promise<
    | {
        readonly locks: readonly HeldLock[];
        readonly before: readonly TransactionResult[];
        readonly after: readonly TransactionResult[];
      }
    | undefined
  > {
    const attempts = locks.map(({ path, exists }) => ({ path, exists: exists ?? true, prefix: this.newPrefix() }));
    const taken = await tryAcquireLocks(this.zk, this.background, attempts, this.dataOf(options), options);
    if (taken === undefined) return undefined;
    const { session, contenders, before, after } = taken;
    return {
      locks: contenders.map((contender, index) => this.held(locks[index]?.path ?? '', contender, session, options)),
      before,
      after,
    };
  }

  private newPrefix(): string {
    return contenderPrefix(this.options.random?.uuidHex() ?? randomHex());
  }

  private dataOf(options: LockOptions): Uint8Array {
    return Buffer.from(options.identifier ?? this.identifier);
  }

  private held(path: string, contender: string, session: Session, options: LockOptions): HeldLock {
    const lock = new ContenderLock(path, contender, session, this.sessions, this.background);
    if (options.watchContender === true) watchContender(this.zk, lock, this.clock);
    return lock;
  }

  /** Makes a contender, and the directory if it is missing. */
  private async createContender(path: string, data: Uint8Array, deadline: Deadline): Promise<OwnContender> {
    const { options } = deadline;
    for (;;) {
      await this.zk.connected(options);
      const prefix = this.newPrefix();
      const { session: before } = this.zk;
      try {
        const created = await this.zk.create(`${path}/${prefix}`, data, { ...options, mode: 'ephemeral-sequential' });
        const { session } = this.zk;
        // Otherwise it went with the session that it was made in.
        if (session?.id === created.stat.ephemeralOwner) return { path: created.path, session };
      } catch (error) {
        if (isZooKeeperError(error, 'no-node')) await ensurePath(this.zk, path, options);
        else if (!isZooKeeperError(error, 'outcome-unknown')) throw error;
        else {
          const found = await this.afterUnknownOutcome(path, prefix, before, deadline);
          if (found !== undefined) return found;
        }
      }
    }
  }

  /** Finds the contender that a creation may have made. Undefined: none that lives. */
  private async afterUnknownOutcome(
    path: string,
    prefix: string,
    before: Session | undefined,
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
      if (before !== undefined) void this.background.removeByPrefix(path, prefix, before);
      throw error;
    }
  }

  private async waitForTurn(path: string, contender: OwnContender, deadline: Deadline): Promise<void> {
    const own = contender.path.slice(path.length + 1);
    for (;;) {
      const { children } = await this.zk.children(path, deadline.options);
      const line = sortedContenders(children);
      const place = line.findIndex(({ name }) => name === own);
      if (contender.session.lost.aborted) throw sessionLost(path, contender.session);
      if (place < 0) {
        const message = `lock ${path}: somebody removed our contender ${own} while it waited in line`;
        throw new NoNodeError('no-node', message, { path: contender.path });
      }
      const predecessor = line[place - 1];
      if (predecessor === undefined) return;
      await this.waitForChange(`${path}/${predecessor.name}`, contender.session, deadline);
    }
  }

  /** Until something happens to the predecessor; also when it is gone already. */
  private async waitForChange(predecessor: string, session: Session, deadline: Deadline): Promise<void> {
    let tell = (): void => undefined;
    const happened = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const stat = await this.zk.exists(predecessor, { ...deadline.options, watch: () => tell() });
    if (stat !== undefined) await untilAborted(happened, [session.lost, deadline.signal]);
  }
}

function sessionLost(path: string, session: Session): SessionLostError {
  const message = `lock ${path}: the session was lost while waiting in line`;
  return new SessionLostError('session-lost', message, { path, cause: session.lost.reason });
}

function randomHex(): string {
  return randomBytes(16).toString('hex');
}
