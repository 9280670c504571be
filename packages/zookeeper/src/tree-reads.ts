/**
 * The reads of a tree cache: at most one per path and turn of the event loop, void if the znode is deleted meanwhile.
 */

import type { Stat, ZooKeeper } from './api.js';
import { isZooKeeperError } from './errors.js';

/** The pending reads of one path. */
export interface PathReads {
  readonly path: string;
  outstanding: number;
  queued: boolean;
  /** True once a deletion event arrived after they were issued. */
  void: boolean;
  /** Callbacks for the next answer. */
  waiters: (() => void)[];
}

/** Data and stat of a znode, or undefined if it does not exist. */
export type ReadResult = { readonly data: Uint8Array; readonly stat: Stat } | undefined;

export class TreeReads {
  private readonly byPath = new Map<string, PathReads>();
  private queue: PathReads[] = [];
  private readonly flush = (): void => {
    const { queue } = this;
    this.queue = [];
    for (const reads of queue) if (!reads.void) this.issue(reads, this.onRead, this.onFailure);
  };

  /** `onRead` and `onFailure` receive the results of `request`, unless the read became void. */
  constructor(
    private readonly zk: ZooKeeper,
    private readonly onRead: (path: string, result: ReadResult) => void,
    private readonly onFailure: (path: string, error: unknown) => void,
  ) {}

  /** Schedules a read. Requests for one path within a turn share it. */
  request(path: string): void {
    const reads = this.readsOf(path);
    if (reads.queued) return;
    reads.queued = true;
    if (this.queue.length === 0) queueMicrotask(this.flush);
    this.queue.push(reads);
  }

  /** Reads at once. Calls `onFailure` without an error if the read becomes void. */
  read(
    path: string,
    onRead: (path: string, result: ReadResult) => void,
    onFailure: (path: string, error?: unknown) => void,
  ): void {
    this.issue(this.readsOf(path), onRead, onFailure, true);
  }

  /** Voids the pending reads, which may return the state before the deletion. */
  deleted(path: string): void {
    const reads = this.byPath.get(path);
    if (reads === undefined) return;
    reads.void = true;
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

  private readsOf(path: string): PathReads {
    let reads = this.byPath.get(path);
    if (reads === undefined) {
      reads = { path, outstanding: 0, queued: false, void: false, waiters: [] };
      this.byPath.set(path, reads);
    }
    return reads;
  }

  private issue(
    reads: PathReads,
    onRead: (path: string, result: ReadResult) => void,
    onFailure: (path: string, error?: unknown) => void,
    immediate = false,
  ): void {
    if (!immediate) reads.queued = false;
    reads.outstanding++;
    this.zk.get(reads.path).then(
      (result) => {
        this.done(reads);
        if (!reads.void) onRead(reads.path, result);
        else if (immediate) onFailure(reads.path);
      },
      (error: unknown) => {
        this.done(reads);
        if (reads.void) {
          if (immediate) onFailure(reads.path);
        } else if (isZooKeeperError(error, 'no-node')) onRead(reads.path, undefined);
        else onFailure(reads.path, error);
      },
    );
  }

  private done(reads: PathReads): void {
    reads.outstanding--;
    release(reads);
    if (reads.outstanding === 0 && !reads.queued && !reads.void) this.byPath.delete(reads.path);
  }
}

function release(reads: PathReads): void {
  const { waiters } = reads;
  if (waiters.length === 0) return;
  reads.waiters = [];
  for (const resolve of waiters) resolve();
}
