/** One load of a tree cache: reads all znodes, many concurrently. */

import type { ZooKeeper } from './api.js';
import { isZooKeeperError } from './errors.js';
import { Fifo } from './client/fifo.js';
import { childPath } from './tree-nodes.js';
import type { ReadResult, TreeReads } from './tree-reads.js';

/** Receives the results of a walk. */
export interface WalkHandler {
  wantsData(path: string): boolean;
  onRead(path: string, result: ReadResult): void;
  /** A znode exists whose data is not wanted. */
  onPresent(path: string): void;
  onChildren(path: string, names: readonly string[]): void;
  /** A request failed; `retry` issues it again. */
  onFailure(path: string, error: unknown, retry: () => void): void;
  onDone(): void;
}

/** Limit of concurrent requests: keeps a server busy over long round trips, and bounds memory. */
const MAX_IN_FLIGHT = 500;

export class TreeWalk {
  private readonly waiting = new Fifo<string>();
  private inFlight = 0;
  private abandoned = false;
  private filling = false;

  constructor(
    private readonly zk: ZooKeeper,
    private readonly reads: TreeReads,
    private readonly handler: WalkHandler,
  ) {}

  start(root: string): void {
    this.visit([root]);
  }

  /** Stops calling the handler. */
  abandon(): void {
    this.abandoned = true;
  }

  private visit(paths: readonly string[]): void {
    for (const path of paths) this.waiting.push(path);
    if (this.filling) return;
    this.filling = true;
    while (this.inFlight < MAX_IN_FLIGHT) {
      const path = this.waiting.shift();
      if (path === undefined) break;
      this.inFlight++;
      this.load(path);
    }
    this.filling = false;
    if (this.inFlight === 0 && !this.abandoned) this.handler.onDone();
  }

  private load(path: string): void {
    if (this.handler.wantsData(path)) {
      this.read(path);
      return;
    }
    this.handler.onPresent(path);
    this.list(path);
  }

  private read(path: string): void {
    const onRead = (_path: string, result: ReadResult): void => {
      if (this.abandoned) return;
      this.handler.onRead(path, result);
      if (result !== undefined && result.stat.numChildren > 0) {
        this.list(path);
        return;
      }
      if (result !== undefined) this.handler.onChildren(path, []);
      this.done([]);
    };
    this.reads.read(path, onRead, (_path, error) => {
      // Deleted meanwhile: if it was created again, an event reports it.
      if (error === undefined) this.done([]);
      else this.failed(path, error, () => this.read(path));
    });
  }

  private list(path: string): void {
    this.zk.children(path).then(
      ({ children }) => {
        if (this.abandoned) return;
        this.handler.onChildren(path, children);
        // Sorted, so that a listener that keeps sequential znodes in order only appends.
        this.done([...children].sort().map((name) => childPath(path, name)));
      },
      (error: unknown) => {
        if (!isZooKeeperError(error, 'no-node')) {
          this.failed(path, error, () => this.list(path));
        } else if (!this.abandoned) {
          this.handler.onRead(path, undefined);
          this.done([]);
        }
      },
    );
  }

  private failed(path: string, error: unknown, retry: () => void): void {
    if (this.abandoned) return;
    this.handler.onFailure(path, error, () => {
      if (!this.abandoned) retry();
    });
  }

  private done(found: readonly string[]): void {
    if (this.abandoned) return;
    this.inFlight--;
    this.visit(found);
  }
}
