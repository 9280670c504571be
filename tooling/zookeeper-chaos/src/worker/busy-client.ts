/** A client under load: hundreds of calls in flight, locks, ephemerals, watches, and a tree cache. */

import { seededRandom } from '@nodepool/core/testing';
import {
  treeCache,
  connect,
  lockRecipe,
  sleep,
  systemClock,
  type TreeCache,
  type Locks,
  type ZooKeeper,
} from '@nodepool/zookeeper';
import type { ClientHistory } from '../history.js';
import { numbered, REGISTER_COUNT, REGISTERS, stateOf, TREE, TREE_END } from '../layout.js';
import { Workload } from './workload.js';
import type { WorkerSettings } from './protocol.js';
import { Recorder } from './recorder.js';
import { Watched } from './watched.js';

const REGISTER_LANES = 4;
const TREE_LANES = 4;
const LOCK_LANES = 4;
const READ_LANES = 10;
const EPHEMERALS = 5;

export class BusyClient {
  private readonly zk: ZooKeeper;
  private readonly locks: Locks;
  private readonly tree: TreeCache;
  private readonly recorder = new Recorder();
  private readonly workload: Workload;
  private readonly watched: readonly Watched[];
  private readonly running: Promise<void>[] = [];
  private stopping = false;
  private pause: Promise<void> | undefined;
  private onTreeEnd: () => void = () => undefined;
  private readonly treeEnded = new Promise<void>((resolve) => {
    this.onTreeEnd = resolve;
  });

  constructor(
    private readonly name: string,
    private readonly settings: WorkerSettings,
    seed: number,
  ) {
    const random = seededRandom(seed);
    const { servers, sessionTimeoutMs, operationTimeoutMs } = settings;
    this.zk = connect({ servers, sessionTimeoutMs, operationTimeoutMs, reconnectDelayMs: [50, 500], random });
    this.zk.on('lost', () => this.recorder.sessionsLost++);
    this.locks = lockRecipe(this.zk, { identifier: name, onWarning: (error) => this.complain(error) });
    this.tree = treeCache(
      this.zk,
      TREE,
      {
        onPut: ({ path }) => {
          if (path === TREE_END) this.onTreeEnd();
        },
        onRemove: () => undefined,
      },
      // Failed reads are retried; only the final state is checked.
      { onWarning: () => undefined },
    );
    this.workload = new Workload(name, this.zk, this.locks, this.recorder, random);
    this.watched = [
      ...numbered(REGISTERS, REGISTER_COUNT).map((path) => this.watchRegister(path)),
      new Watched(this.zk, this.recorder, {
        path: TREE,
        mode: 'persistent-recursive',
        counts: ({ type, path }) => type !== 'changed' && path.lastIndexOf('/') === TREE.length,
        changes: ({ cversion }) => cversion,
      }),
    ];
  }

  start(): void {
    const { workload } = this;
    const nodeLanes = Math.max(1, this.settings.inFlight - REGISTER_LANES - TREE_LANES - LOCK_LANES - READ_LANES);
    this.run(nodeLanes, () => workload.nodes());
    this.run(READ_LANES, () => workload.read());
    this.run(REGISTER_LANES, () => workload.register());
    this.run(TREE_LANES, () => workload.tree());
    this.run(LOCK_LANES, () => workload.lock());
    for (const watched of this.watched) this.run(1, () => watched.read());
    for (const path of numbered(REGISTERS, REGISTER_COUNT)) this.supervise(workload.oneShot(path, () => this.stopping));
    let ephemerals = 0;
    this.zk.on('session', () => {
      for (let count = 0; count < EPHEMERALS && !this.stopping && ephemerals++ < 500; count++) {
        this.supervise(workload.ephemeral());
      }
    });
  }

  /** Stops issuing calls. Resolves when all calls are settled, at the latest after that many milliseconds. */
  async quiet(withinMs: number): Promise<void> {
    this.stopping = true;
    await this.within(withinMs, async () => {
      await Promise.all(this.running);
      await this.locks.idle();
      await this.zk.connected({ timeoutMs: withinMs });
    });
  }

  /** Resolves with the history, after the tree cache has received the final znode. */
  async history(withinMs: number): Promise<ClientHistory> {
    const unsettled = this.recorder.unsettled;
    if (this.locks.removals > 0) unsettled.push(`${this.locks.removals} removals of contenders`);
    await this.within(withinMs, async () => {
      await this.zk.sync(TREE);
      await this.treeEnded;
      for (const watched of this.watched) await watched.read();
    });
    const { nodeWrites, registerWrites, registerReads, segments, oneShots, fencedWrites, ephemerals } = this.recorder;
    return {
      client: this.name,
      unsettled,
      unexpected: this.recorder.unexpected,
      calls: this.recorder.calls,
      sessionsLost: this.recorder.sessionsLost,
      ...{ nodeWrites, registerWrites, registerReads, oneShots, fencedWrites, ephemerals },
      segments: segments.map(({ path, reads }) => ({ path, reads })),
      session: this.zk.session?.id.toString() ?? '',
      tree: this.dumpTree(),
    };
  }

  async close(): Promise<void> {
    this.tree.close();
    await this.zk.close();
  }

  private watchRegister(path: string): Watched {
    return new Watched(this.zk, this.recorder, {
      path,
      mode: 'persistent',
      counts: ({ type }) => type === 'changed',
      changes: ({ version }) => version,
    });
  }

  private run(count: number, step: () => Promise<void>): void {
    const lane = async (): Promise<void> => {
      while (!this.stopping) {
        await step();
        await this.nextBurst();
      }
    };
    for (let index = 0; index < count; index++) this.supervise(lane());
  }

  /** Resolves for all lanes together, so that their calls are in flight together. */
  private nextBurst(): Promise<void> | undefined {
    const { pauseMs } = this.settings;
    if (pauseMs === 0) return undefined;
    this.pause ??= sleep(systemClock, pauseMs).then(() => {
      this.pause = undefined;
    });
    return this.pause;
  }

  private supervise(work: Promise<void>): void {
    this.running.push(work.catch((error: unknown) => this.complain(error)));
  }

  private complain(error: unknown): void {
    this.recorder.unexpected.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  private async within(ms: number, work: () => Promise<void>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = systemClock.schedule(ms, resolve);
      const over = (): void => {
        timer.cancel();
        resolve();
      };
      work().then(over, (error: unknown) => {
        this.complain(error);
        over();
      });
    });
  }

  private dumpTree(): Record<string, string> {
    const dump: Record<string, string> = {};
    const visit = (path: string): void => {
      const node = this.tree.get(path);
      if (node === undefined) return;
      dump[path] = stateOf(node.data, node.stat.mzxid);
      for (const child of this.tree.children(path)) visit(`${path}/${child}`);
    };
    visit(TREE);
    return dump;
  }
}
