/** The reads of a cached tree: issued together, one per path and turn, and void when the znode was deleted meanwhile. */

import type { Stat, ZooKeeper } from './api.js';
import { isZooKeeperError } from './errors.js';

/** What the reads of one path share. */
export interface PathReads {
  readonly path: string;
  outstanding: number;
  queued: boolean;
  /** A deletion arrived after they were issued. */
  void: boolean;
  /** Who waits for the next answer. */
  waiters: (() => void)[];
}

/** Undefined: there is no such znode. */
export type ReadResult = { readonly data: Uint8Array; readonly stat: Stat } | undefined;

export class TreeReads {
  private readonly byPath = new Map<string, PathReads>();
  private queue: PathReads[] = [];
  private readonly flush = (): void => {
    const { queue } = this;
    this.queue = [];
    for (const reads of queue) if (!reads.void) this.issue(reads, this.onRead, this.onFailure);
  };

  /** `onRead` and `onFailure` hear of the reads that `request` leads to, unless they became void. */
  constructor(
    private readonly zk: ZooKeeper,
    private readonly onRead: (path: string, result: ReadResult) => void,
    private readonly onFailure: (path: string, error: unknown) => void,
  ) {}

  /** Reads soon. Events that arrive together lead to one read. */
  request(path: string): void {
    const reads = this.readsOf(path);
    if (reads.queued) return;
    reads.queued = true;
    if (this.queue.length === 0) queueMicrotask(this.flush);
    this.queue.push(reads);
  }

  /** Reads now. `onRead` is not called when the read becomes void: then `onFailure` is, without an error. */
  read(
    path: string,
    onRead: (path: string, result: ReadResult) => void,
    onFailure: (path: string, error?: unknown) => void,
  ): void {
    this.issue(this.readsOf(path), onRead, onFailure, true);
  }

  /** What is under way may tell of the znode as it was before it was deleted. */
  deleted(path: string): void {
    const reads = this.byPath.get(path);
    if (reads === undefined) return;
    reads.void = true;
    this.byPath.delete(path);
    release(reads);
  }

  /** Resolves when each of these paths of which a read is under way was answered, or its read became void. */
  answered(isMeant: (path: string) => boolean): Promise<void> | undefined {
    const meant = [...this.byPath.values()].filter(({ path }) => isMeant(path));
    if (meant.length === 0) return undefined;
    return Promise.all(meant.map(({ waiters }) => new Promise<void>((resolve) => waiters.push(resolve)))).then(
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
