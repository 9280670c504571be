/**
 * The reads of a tree cache: at most one per path and turn of the event loop, void if the znode is deleted meanwhile.
 * They are sent after the promises of the same turn are settled, because the answer to a creation may replace a read,
 * or later if the owner of the cache allows it, so that one read follows several changes.
 */

import type { ReadResult, Stat, ZooKeeper } from './api.js';
import type { Clock, Timer } from './clock.js';
import { isZooKeeperError } from './errors.js';

/** The number of reads in one request, see `tree-walk.ts`. */
const BATCH_SIZE = 32;

export interface PathReads {
  readonly path: string;
  outstanding: number;
  /** Number of requests for a read that is not sent yet. */
  requests: number;
  /** True once a deletion event arrived after they were issued. */
  void: boolean;
  /** True while the read waits for further changes. */
  isDelayed: boolean;
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
  /** Delayed reads by their delay, milliseconds. */
  private readonly delayed = new Map<number, { readonly reads: PathReads[]; readonly timer: Timer }>();
  private batchSize = BATCH_SIZE;
  private readonly flush = (): void => {
    const { queue } = this;
    this.queue = [];
    this.deletedUnread.clear();
    const due: PathReads[] = [];
    for (const reads of queue) {
      if (reads.void || reads.requests === 0) continue;
      const delayMs = this.delayMs(reads.path);
      if (delayMs > 0) this.delay(reads, delayMs);
      else due.push(reads);
    }
    this.issueAll(due);
  };
  private readonly flushSoon = (): void => process.nextTick(this.flush);

  /** `onRead` and `onFailure` receive the results of `request`, unless the read became void. */
  constructor(
    private readonly zk: ZooKeeper,
    private readonly onRead: (path: string, result: TreeRead) => void,
    private readonly onFailure: (path: string, error: unknown) => void,
    private readonly clock: Clock,
    /** Returns the time (ms) for which the read of a path waits for further changes. */
    private readonly delayMs: (path: string) => number,
  ) {}

  /** Schedules a read. Requests for one path within a turn share it. */
  request(path: string): void {
    const reads = this.readsOf(path);
    reads.requests++;
    if (reads.requests > 1) return;
    this.scheduleFlush();
    this.queue.push(reads);
  }

  /** Returns true if a change of the path may not have been read yet. */
  isPending(path: string): boolean {
    return this.byPath.has(path);
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
    for (const { timer } of this.delayed.values()) timer.cancel();
    this.delayed.clear();
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

  /**
   * Resolves when the pending reads of the matching paths are done or void; they wait for no further changes. Returns
   * undefined if there are none.
   */
  answered(matches: (path: string) => boolean): Promise<void> | undefined {
    if (this.byPath.size === 0) return undefined;
    const matching = [...this.byPath.values()].filter(({ path }) => matches(path));
    if (matching.length === 0) return undefined;
    this.issueDelayed(matching);
    return Promise.all(matching.map(({ waiters }) => new Promise<void>((resolve) => waiters.push(resolve)))).then(
      () => undefined,
    );
  }

  /** Does the same as `answered` for one path, except that the read waits for as long as it may now. */
  answeredOne(path: string): Promise<void> | undefined {
    const reads = this.byPath.get(path);
    if (reads === undefined) return undefined;
    if (reads.isDelayed) {
      const delayMs = this.delayMs(path);
      if (delayMs > 0) this.delay(reads, delayMs);
      else this.issueDelayed([reads]);
    }
    return new Promise<void>((resolve) => reads.waiters.push(resolve));
  }

  /** Adds a read to those with the same delay, which are issued together. */
  private delay(reads: PathReads, delayMs: number): void {
    reads.isDelayed = true;
    const group = this.delayed.get(delayMs);
    if (group !== undefined) {
      group.reads.push(reads);
      return;
    }
    const list = [reads];
    const end = (): void => {
      this.delayed.delete(delayMs);
      this.issueDelayed(list);
    };
    this.delayed.set(delayMs, { reads: list, timer: this.clock.schedule(delayMs, end, { background: true }) });
  }

  private issueDelayed(list: readonly PathReads[]): void {
    const due: PathReads[] = [];
    for (const reads of list) {
      if (!reads.isDelayed) continue;
      reads.isDelayed = false;
      if (!reads.void && reads.requests > 0) due.push(reads);
    }
    this.issueAll(due);
  }

  private scheduleFlush(): void {
    // A tick that a microtask adds follows all microtasks.
    if (this.queue.length === 0 && this.deletedUnread.size === 0) queueMicrotask(this.flushSoon);
  }

  private readsOf(path: string): PathReads {
    let reads = this.byPath.get(path);
    if (reads === undefined) {
      const waiters: (() => void)[] = [];
      reads = { path, outstanding: 0, requests: 0, void: false, isDelayed: false, waiters };
      this.byPath.set(path, reads);
    }
    return reads;
  }

  private issueAll(due: readonly PathReads[]): void {
    for (let start = 0; start < due.length; start += this.batchSize) {
      const batch = due.slice(start, start + this.batchSize);
      const [first] = batch;
      if (batch.length === 1 && first !== undefined) this.issue(first);
      else this.issueBatch(batch);
    }
  }

  private issueBatch(batch: readonly PathReads[]): void {
    for (const reads of batch) {
      reads.requests = 0;
      reads.outstanding++;
    }
    this.zk.readTransaction(batch.map(({ path }) => ({ type: 'get', path }))).then(
      (answers) => batch.forEach((reads, index) => this.answeredInBatch(reads, answers[index])),
      (error: unknown) => {
        // The answer may have exceeded the limit of the client.
        if (isZooKeeperError(error, 'protocol')) this.batchSize = 1;
        for (const reads of batch) if (this.end(reads)) this.onFailure(reads.path, error);
      },
    );
  }

  private answeredInBatch(reads: PathReads, answer: ReadResult | undefined): void {
    if (!this.end(reads)) return;
    if (answer?.type === 'get') this.onRead(reads.path, answer);
    else if (answer?.type === 'error' && isZooKeeperError(answer.error, 'no-node')) this.onRead(reads.path, undefined);
    else this.onFailure(reads.path, answer?.type === 'error' ? answer.error : new Error('a read has no answer'));
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
