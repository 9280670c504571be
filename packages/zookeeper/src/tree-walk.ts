/** One load of a tree cache: reads all znodes in batches, many concurrently, the descendants of a znode first. */

import type { ReadOp, ReadResult, ZooKeeper } from './api.js';
import { isZooKeeperError } from './errors.js';
import { Fifo } from './client/fifo.js';
import { childPath } from './tree-nodes.js';
import type { PathReads, TreeRead, TreeReads } from './tree-reads.js';

export interface WalkHandler {
  wantsData(path: string): boolean;
  isLeaf(path: string): boolean;
  /** Returns true if the cache holds the znode from an earlier load. */
  isKnown(path: string): boolean;
  onRead(path: string, result: TreeRead): void;
  /** A znode exists whose data is not wanted. */
  onPresent(path: string): void;
  onChildren(path: string, names: readonly string[]): void;
  /** A request failed; `retry` issues it again, unless the walk was abandoned. */
  onFailure(error: unknown, retry: () => void): void;
  onDone(): void;
}

/** Limit of concurrent reads: keeps a server busy over long round trips, and bounds memory. */
const MAX_IN_FLIGHT = 512;

/** The number of reads in one request. A walk reduces it for later walks if the answer to a request is too large. */
export interface BatchSize {
  reads: number;
}

/** The initial size, for which an answer has about 60 kB, and its handling takes a few milliseconds. */
export const FIRST_BATCH_SIZE = 32;

interface Visit {
  readonly path: string;
  readonly depth: number;
  /** The znode whose data waits for this one; undefined once it does not wait any more. */
  parent: Visit | undefined;
  /** The next or present read. */
  step: ReadOp['type'];
  /** Number of its own reads and of its children that are not complete. */
  open: number;
  /** The read whose result has not been passed on. */
  reads: PathReads | undefined;
  result: TreeRead;
}

/**
 * Passes on the data of a new znode after its descendants: a listener that sees a lock before the locked record handles
 * the record once.
 */
export class TreeWalk {
  /** Visits by depth and step: the deepest are read first, so that few results wait for descendants. */
  private readonly waiting: Fifo<Visit>[] = [];
  private inFlight = 0;
  /** Visits that are not complete, failed ones included. */
  private unfinished = 0;
  private readonly abandonment = new AbortController();

  constructor(
    private readonly zk: ZooKeeper,
    private readonly reads: TreeReads,
    private readonly handler: WalkHandler,
    private readonly batchSize: BatchSize,
  ) {}

  start(root: string): void {
    this.visit(root, undefined);
    this.fill();
  }

  abandon(): void {
    this.abandonment.abort();
  }

  private get abandoned(): boolean {
    return this.abandonment.signal.aborted;
  }

  private visit(path: string, parent: Visit | undefined): void {
    const wantsData = this.handler.wantsData(path);
    if (!wantsData) this.handler.onPresent(path);
    if (!wantsData && this.handler.isLeaf(path)) return;
    const depth = parent === undefined ? 0 : parent.depth + 1;
    if (parent !== undefined) parent.open++;
    this.unfinished++;
    const step = wantsData ? 'get' : 'children';
    this.enqueue({ path, depth, parent, step, open: 1, reads: undefined, result: undefined });
  }

  private enqueue(visit: Visit): void {
    const stage = 2 * visit.depth + (visit.step === 'children' ? 1 : 0);
    while (this.waiting.length <= stage) this.waiting.push(new Fifo());
    this.waiting[stage]?.push(visit);
  }

  private fill(): void {
    while (!this.abandoned) {
      const batch = this.nextBatch(Math.min(this.batchSize.reads, MAX_IN_FLIGHT - this.inFlight));
      if (batch.length === 0) break;
      this.inFlight += batch.length;
      this.read(batch);
    }
    if (this.unfinished === 0 && !this.abandoned) this.handler.onDone();
  }

  private nextBatch(limit: number): readonly Visit[] {
    const batch: Visit[] = [];
    for (let stage = this.waiting.length - 1; stage >= 0; stage--) {
      while (batch.length < limit) {
        const visit = this.waiting[stage]?.shift();
        if (visit === undefined) break;
        batch.push(visit);
      }
    }
    return batch;
  }

  private read(batch: readonly Visit[]): void {
    for (const visit of batch) if (visit.step === 'get') visit.reads = this.reads.begin(visit.path);
    const ops = batch.map(({ step, path }) => ({ type: step, path }));
    this.zk.readTransaction(ops, { signal: this.abandonment.signal }).then(
      (answers) => {
        this.inFlight -= batch.length;
        for (const [index, visit] of batch.entries()) {
          const answer = answers[index];
          if (answer !== undefined && !this.abandoned) this.answered(visit, answer);
        }
        this.fill();
      },
      (error: unknown) => {
        if (this.abandoned) return;
        this.inFlight -= batch.length;
        // The answer may have exceeded the limit of the client.
        if (isZooKeeperError(error, 'protocol')) this.batchSize.reads = 1;
        for (const visit of batch) this.failed(visit, error);
        this.fill();
      },
    );
  }

  private answered(visit: Visit, answer: ReadResult): void {
    const { path } = visit;
    switch (answer.type) {
      case 'get':
        visit.result = answer;
        if (this.handler.isKnown(path)) this.passOn(visit);
        if (answer.stat.numChildren > 0) {
          visit.step = 'children';
          this.enqueue(visit);
          return;
        }
        this.handler.onChildren(path, []);
        this.complete(visit);
        return;
      case 'children':
        this.handler.onChildren(path, answer.children);
        // Sorted, so that a listener that keeps sequential znodes in order only appends.
        for (const name of [...answer.children].sort()) this.visit(childPath(path, name), visit);
        this.complete(visit);
        return;
      case 'error':
        if (!isZooKeeperError(answer.error, 'no-node')) {
          this.failed(visit, answer.error);
          return;
        }
        visit.result = undefined;
        if (visit.reads === undefined) this.handler.onRead(path, undefined);
        this.complete(visit);
    }
  }

  /** One of the parts that the visit waits for is complete. */
  private complete(visit: Visit): void {
    visit.open--;
    if (visit.open > 0) return;
    this.unfinished--;
    this.passOn(visit);
    if (visit.parent !== undefined) this.complete(visit.parent);
  }

  /** Passes on the result of a read, unless the znode was deleted meanwhile: an event reports a later creation. */
  private passOn(visit: Visit): void {
    const { path, reads, result } = visit;
    if (reads === undefined) return;
    visit.reads = undefined;
    visit.result = undefined;
    if (this.reads.end(reads)) this.handler.onRead(path, result);
  }

  /** Retries later. Results that wait for this visit are passed on at once. */
  private failed(visit: Visit, error: unknown): void {
    const { parent } = visit;
    visit.parent = undefined;
    if (visit.step === 'children') this.passOn(visit);
    else if (visit.reads !== undefined) {
      this.reads.end(visit.reads);
      visit.reads = undefined;
    }
    if (parent !== undefined) this.complete(parent);
    this.handler.onFailure(error, () => {
      if (this.abandoned) return;
      this.enqueue(visit);
      this.fill();
    });
  }
}
