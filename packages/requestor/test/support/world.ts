/** A simulated ZooKeeper with a scripted launcher and a requestor, on a virtual clock. */

import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import type { JsonObject } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { openRequestor, type Requestor } from '../../src/index.js';
import { decode, ScriptedLauncher } from './scripted-launcher.js';

const LIMIT_MS = 600_000;

export class World {
  readonly clock = new VirtualClock();
  readonly server = new SimulatedZooKeeperServer({ clock: this.clock, latencyMs: 1 });
  readonly launcher = new ScriptedLauncher(this.server.connect({ sessionTimeoutMs: 60_000 }), this.clock);
  readonly zooKeeper: ZooKeeper = this.server.connect({ sessionTimeoutMs: 9000 });
  /** Another program with access to ZooKeeper. */
  readonly other: ZooKeeper = this.server.connect({ sessionTimeoutMs: 60_000 });
  readonly requestor: Requestor;
  readonly violations: string[] = [];
  partitioned = false;

  constructor(seed = 1) {
    this.requestor = openRequestor(this.zooKeeper, { name: 'test', clock: this.clock, random: seededRandom(seed) });
  }

  static async start(seed?: number): Promise<World> {
    const world = new World(seed);
    await world.run(world.launcher.start());
    return world;
  }

  async run<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    work.then(done, done);
    if (!(await this.clock.runUntil(() => settled, LIMIT_MS))) throw new Error('the promise was never settled');
    return work;
  }

  records(kind: 'nodes' | 'requests'): Map<string, JsonObject> {
    const prefix = `/nodepool/${kind}/`;
    const found = new Map<string, JsonObject>();
    for (const [path, { data }] of this.server.dump()) {
      const id = path.slice(prefix.length);
      if (path.startsWith(prefix) && !id.includes('/')) found.set(id, decode(data));
    }
    return found;
  }

  contenders(): string[] {
    return [...this.server.dump().keys()].filter((path) => path.includes('__lock__'));
  }

  async stop(): Promise<void> {
    await this.run(this.requestor.close());
    await this.run(this.zooKeeper.close());
    await this.run(this.other.close());
    await this.run(this.launcher.stop());
  }
}
