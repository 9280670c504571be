/**
 * The reads of a tree cache: at most one per path and turn of the event loop, void if the znode is deleted meanwhile.
 * They are sent after the promises of the same turn are settled, because the answer to a creation may replace a read.
 */

import type { Stat, ZooKeeper } from './api.js';
import { isZooKeeperError } from './errors.js';

export interface PathReads {
  readonly path: string;
  outstanding: number;
  /** Number of requests for a read that is not sent yet. */
  requests: number;
  /** True once a deletion event arrived after they were issued. */
  void: boolean;
  /** Callbacks for the next answer. */
  waiters: (() => void)[];
}

/** Data and stat of a znode, or undefined if it does not exist. */
export type TreeRead = { readonly data: Uint8Array; readonly stat: Stat } | undefined;

export class TreeReads {
  private readonly byPath = new Map<string, PathReads>();
  private queue: PathReads[] = [];
  /** Number of deletions in this turn of paths before the answer to a requested read. */
  private readonly deletedUnread = new Map<string, number>();
  private readonly flush = (): void => {
    const { queue } = this;
    this.queue = [];
    this.deletedUnread.clear();
    for (const reads of queue) if (!reads.void && reads.requests > 0) this.issue(reads);
  };
  private readonly flushSoon = (): void => process.nextTick(this.flush);

  /** `onRead` and `onFailure` receive the results of `request`, unless the read became void. */
  constructor(
    private readonly zk: ZooKeeper,
    private readonly onRead: (path: string, result: TreeRead) => void,
    private readonly onFailure: (path: string, error: unknown) => void,
  ) {}

  /** Schedules a read. Requests for one path within a turn share it. */
  request(path: string): void {
    const reads = this.readsOf(path);
    reads.requests++;
    if (reads.requests > 1) return;
    this.scheduleFlush();
    this.queue.push(reads);
  }

  /**
   * Withdraws the only request of a path that was never read, because the result is known. Returns false if the znode
   * was deleted after the request, more often than `deletions`, so that the result must not be used.
   */
  withdraw(path: string, deletions = 0): boolean {
    if ((this.deletedUnread.get(path) ?? 0) > deletions) return false;
    const reads = this.byPath.get(path);
    if (reads?.requests !== 1 || reads.outstanding > 0) return true;
    reads.requests = 0;
    this.byPath.delete(path);
    release(reads);
    return true;
  }

  /** Starts a read that the caller issues. Call `end` exactly once. */
  begin(path: string): PathReads {
    const reads = this.readsOf(path);
    reads.outstanding++;
    return reads;
  }

  /** Ends a read. Returns false if it became void, so that its result must not be used. */
  end(reads: PathReads): boolean {
    reads.outstanding--;
    release(reads);
    if (reads.outstanding === 0 && reads.requests === 0 && !reads.void) this.byPath.delete(reads.path);
    return !reads.void;
  }

  /** Releases everything that waits for an answer, because the results are not used any more. */
  abandon(): void {
    for (const reads of this.byPath.values()) release(reads);
  }

  /** Voids the pending reads, which may return the state before the deletion. */
  deleted(path: string): void {
    if (this.byPath.size === 0) return;
    const reads = this.byPath.get(path);
    if (reads === undefined) return;
    reads.void = true;
    this.scheduleFlush();
    this.deletedUnread.set(path, (this.deletedUnread.get(path) ?? 0) + 1);
    this.byPath.delete(path);
    release(reads);
  }

  /** Resolves when the pending reads of the matching paths are done or void. Returns undefined if there are none. */
  answered(matches: (path: string) => boolean): Promise<void> | undefined {
    const matching = [...this.byPath.values()].filter(({ path }) => matches(path));
    if (matching.length === 0) return undefined;
    return Promise.all(matching.map(({ waiters }) => new Promise<void>((resolve) => waiters.push(resolve)))).then(
      () => undefined,
    );
  }

  /** Does the same as `answered` for one path. */
  answeredOne(path: string): Promise<void> | undefined {
    const reads = this.byPath.get(path);
    return reads === undefined ? undefined : new Promise<void>((resolve) => reads.waiters.push(resolve));
  }

  private scheduleFlush(): void {
    // A tick that a microtask adds follows all microtasks.
    if (this.queue.length === 0 && this.deletedUnread.size === 0) queueMicrotask(this.flushSoon);
  }

  private readsOf(path: string): PathReads {
    let reads = this.byPath.get(path);
    if (reads === undefined) {
      const waiters: (() => void)[] = [];
      reads = { path, outstanding: 0, requests: 0, void: false, waiters };
      this.byPath.set(path, reads);
    }
    return reads;
  }

  private issue(reads: PathReads): void {
    reads.requests = 0;
    reads.outstanding++;
    this.zk.get(reads.path).then(
      (result) => {
        if (this.end(reads)) this.onRead(reads.path, result);
      },
      (error: unknown) => {
        if (!this.end(reads)) return;
        if (isZooKeeperError(error, 'no-node')) this.onRead(reads.path, undefined);
        else this.onFailure(reads.path, error);
      },
    );
  }
}

function release(reads: PathReads): void {
  const { waiters } = reads;
  if (waiters.length === 0) return;
  reads.waiters = [];
  for (const resolve of waiters) resolve();
}
