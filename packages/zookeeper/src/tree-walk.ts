/** One load of a cached tree: reads every znode, many at a time. */

import type { ZooKeeper } from './api.js';
import { isZooKeeperError } from './errors.js';
import { Fifo } from './client/fifo.js';
import { childPath } from './tree-nodes.js';
import type { ReadResult, TreeReads } from './tree-reads.js';

/** What a walk finds out, for the tree. */
export interface WalkHandler {
  wantsData(path: string): boolean;
  onRead(path: string, result: ReadResult): void;
  /** A znode whose data is not wanted is there. */
  onPresent(path: string): void;
  onChildren(path: string, names: readonly string[]): void;
  /** The request could not be answered; `retry` makes it again. */
  onFailure(path: string, error: unknown, retry: () => void): void;
  onDone(): void;
}

/** Deep enough to keep a server busy over any round trip, without filling memory with requests. */
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

  /** Nothing is told any more. */
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
      this.look(path);
    }
    this.filling = false;
    if (this.inFlight === 0 && !this.abandoned) this.handler.onDone();
  }

  private look(path: string): void {
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
      // Deleted meanwhile: what is there now, if anything, is told by events.
      if (error === undefined) this.done([]);
      else this.failed(path, error, () => this.read(path));
    });
  }

  private list(path: string): void {
    this.zk.children(path).then(
      ({ children }) => {
        if (this.abandoned) return;
        this.handler.onChildren(path, children);
        // A server answers in any order; in this one, who keeps sequential znodes sorted only has to append.
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
