/** The simulated server, with a virtual clock that advances by itself. */

import { VirtualClock } from '@nodepool/core/testing';
import type { ZooKeeper } from '../../src/index.js';
import { SimulatedZooKeeperServer, type SimulatedServerOptions } from '../../src/simulated/index.js';
import type { TestClientOptions, ZooKeeperFactory } from './harness.js';

/** The same as for the real servers of the suite. */
const TICK_MS = 500;

export class SimulatedFactory implements ZooKeeperFactory {
  readonly clock = new VirtualClock();
  readonly server: SimulatedZooKeeperServer;
  private running = false;
  private loop: Promise<void> = Promise.resolve();

  constructor(options: Omit<SimulatedServerOptions, 'clock'> = {}) {
    this.server = new SimulatedZooKeeperServer({ clock: this.clock, tickMs: TICK_MS, ...options });
  }

  start(): Promise<void> {
    this.running = true;
    this.loop = this.run();
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.running = false;
    await this.loop;
  }

  async connect(options: TestClientOptions = {}): Promise<ZooKeeper> {
    const client = this.server.connect(options);
    await client.connected();
    return client;
  }

  expire(client: ZooKeeper): Promise<void> {
    this.server.expireSession(client);
    return Promise.resolve();
  }

  disconnect(client: ZooKeeper): Promise<void> {
    this.server.disconnect(client);
    return Promise.resolve();
  }

  isolate(client: ZooKeeper): () => void {
    this.server.partition(client);
    return () => this.server.heal(client);
  }

  private async run(): Promise<void> {
    while (this.running) await this.clock.runNext();
  }
}
