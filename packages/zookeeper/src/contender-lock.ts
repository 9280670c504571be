/** A held lock, and the deletion of contenders in the background. */

import type { CallOptions, Session, Stat, TransactionOp, ZooKeeper } from './api.js';
import { abortReason, sleep, type Clock } from './clock.js';
import { BadVersionError, isZooKeeperError, NoNodeError, ZooKeeperError } from './errors.js';
import type { HeldLock } from './recipes-api.js';

/** Abort reason of every released lock. Shared and without a stack, because creating an error dominates a release. */
const RELEASED = new ZooKeeperError('aborted', 'the lock was released');
RELEASED.stack = `${RELEASED.name}: ${RELEASED.message}`;

/** Delay before the deletion of a contender is retried, milliseconds. */
const RETRY_MS = 1000;

/** Deletes contenders in the background, with retries until they are deleted or their session is lost. */
export class ContenderRemovals {
  private running = 0;
  private idleWaiters: (() => void)[] = [];

  constructor(
    private readonly zk: ZooKeeper,
    private readonly clock: Clock,
    private readonly onWarning: (error: Error) => void,
  ) {}

  /** Deletions in progress. */
  get count(): number {
    return this.running;
  }

  /** Resolves once no deletion is in progress. */
  async idle(): Promise<void> {
    if (this.running > 0) await new Promise<void>((resolve) => this.idleWaiters.push(resolve));
  }

  /** Deletes one contender. Never rejects. */
  remove(contender: string, session: Session): Promise<void> {
    return this.retryUntilSessionLost(session, (options) => this.deleteIfExists(contender, options));
  }

  /**
   * Deletes a persistent contender in this version, retrying until the client is closed. Never rejects. A contender
   * with another version belongs to the process that adopted it.
   */
  removePersistent(contender: string, version: number): Promise<void> {
    return this.retryUntilSessionLost(undefined, (options) => this.deleteIfExists(contender, { ...options, version }));
  }

  /**
   * Finds and deletes what a creation of unknown outcome left in a lock directory, if anything. Never rejects. An
   * unsent request survives its session, so the present session may be the owner; the servers delete what a lost one
   * owns.
   */
  async removeByPrefix(directory: string, prefix: string): Promise<void> {
    const { session } = this.zk;
    if (session === undefined) return;
    await this.retryUntilSessionLost(session, async (options) => {
      const contender = await findContender(this.zk, directory, prefix, options);
      if (contender !== undefined) await this.deleteIfExists(contender, options);
    });
  }

  private async deleteIfExists(path: string, options: CallOptions & { readonly version?: number }): Promise<void> {
    try {
      await this.zk.delete(path, options);
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node') && !isZooKeeperError(error, 'bad-version')) throw error;
    }
  }

  /** Retries until the client is closed if there is no session. */
  private async retryUntilSessionLost(
    session: Session | undefined,
    attempt: (options: CallOptions) => Promise<void>,
  ): Promise<void> {
    this.running++;
    const options: CallOptions = session === undefined ? {} : { signal: session.lost };
    try {
      while (!isOver(session)) {
        try {
          await attempt(options);
          return;
        } catch (error) {
          if (isOver(session) || isZooKeeperError(error, 'closed')) return;
          if (!isTransient(error)) this.onWarning(asError(error));
        }
        await sleep(this.clock, RETRY_MS, session?.lost).catch(() => undefined);
      }
    } finally {
      this.running--;
      if (this.running === 0) {
        const waiters = this.idleWaiters;
        this.idleWaiters = [];
        for (const resolve of waiters) resolve();
      }
    }
  }
}

/** Returns the path of the contender whose creation had an unknown outcome, or undefined if it does not exist. */
export async function findContender(
  zk: ZooKeeper,
  directory: string,
  prefix: string,
  options: CallOptions,
): Promise<string | undefined> {
  // The client may have moved to a server that lags behind the one that applied the creation.
  await zk.sync(directory, options);
  try {
    const { children } = await zk.children(directory, options);
    const name = children.find((child) => child.startsWith(prefix));
    return name === undefined ? undefined : `${directory}/${name}`;
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return undefined;
    throw error;
  }
}

/** A function, because TypeScript assumes that a property stays the same across an await. */
function isOver(session: Session | undefined): boolean {
  return session?.lost.aborted === true;
}

function isTransient(error: unknown): boolean {
  return (
    isZooKeeperError(error, 'connection-lost') ||
    isZooKeeperError(error, 'outcome-unknown') ||
    isZooKeeperError(error, 'session-lost') ||
    isZooKeeperError(error, 'timeout')
  );
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The held locks by session. Adds one abort listener per session, not one per lock. */
export class SessionLocks {
  private readonly bySession = new WeakMap<Session, Set<ContenderLock>>();

  add(lock: ContenderLock): void {
    const { session } = lock;
    let locks = this.bySession.get(session);
    if (locks === undefined) {
      const members = new Set<ContenderLock>();
      locks = members;
      this.bySession.set(session, locks);
      session.lost.addEventListener(
        'abort',
        () => {
          const reason = abortReason(session.lost);
          for (const member of [...members]) member.end(reason);
        },
        { once: true },
      );
    }
    locks.add(lock);
  }

  delete(lock: ContenderLock): void {
    this.bySession.get(lock.session)?.delete(lock);
  }
}

/** A lock held by the first contender. */
export class ContenderLock implements HeldLock {
  readonly fence: TransactionOp;
  readonly releaseOp: TransactionOp;
  private controller: AbortController | undefined;
  /** The reason why the lock is no longer held; undefined while it is held. */
  private endedBy: Error | undefined;
  private releasing: Promise<void> | undefined;

  constructor(
    readonly path: string,
    readonly contender: string,
    readonly session: Session,
    private readonly removals: ContenderRemovals,
    /** The locks that end with their session; undefined for a persistent contender. */
    private readonly locks: SessionLocks | undefined,
    /** Version of the contender. Each adoption of a persistent contender increments it. */
    private readonly version = 0,
  ) {
    this.fence = { type: 'check', path: contender, version };
    this.releaseOp =
      locks === undefined ? { type: 'delete', path: contender, version } : { type: 'delete', path: contender };
    if (locks === undefined) return;
    if (session.lost.aborted) this.endedBy = abortReason(session.lost);
    else locks.add(this);
  }

  get persistent(): boolean {
    return this.locks === undefined;
  }

  get held(): boolean {
    return this.endedBy === undefined;
  }

  get lost(): AbortSignal {
    // Created on demand, because the holders of most locks rely on the fence.
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.endedBy !== undefined) this.controller.abort(this.endedBy);
    }
    return this.controller.signal;
  }

  released(): void {
    this.end(RELEASED);
  }

  release(): Promise<void> {
    if (this.releasing === undefined) {
      const ended = this.endedBy !== undefined;
      this.released();
      this.releasing = ended ? Promise.resolve() : this.removeContender();
    }
    return this.releasing;
  }

  /** Marks the lock as no longer held. Idempotent. */
  end(reason: Error): void {
    if (this.endedBy !== undefined) return;
    this.endedBy = reason;
    this.locks?.delete(this);
    this.controller?.abort(reason);
  }

  /** Ends the lock after another client deleted the contender. */
  contenderDeleted(): void {
    const message = `the lock ${this.path} was lost: another client deleted ${this.contender}`;
    this.end(new NoNodeError('no-node', message, { path: this.contender }));
  }

  /** Ends the lock if the contender has another version, because another process has adopted it. */
  contenderRead({ version }: Stat): void {
    if (version === this.version) return;
    const message = `the lock ${this.path} was lost: another process adopted ${this.contender}`;
    this.end(new BadVersionError('bad-version', message, { path: this.contender }));
  }

  private removeContender(): Promise<void> {
    return this.persistent
      ? this.removals.removePersistent(this.contender, this.version)
      : this.removals.remove(this.contender, this.session);
  }
}
