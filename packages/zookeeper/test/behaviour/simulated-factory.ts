/** The simulated server, with a virtual clock that runs on by itself as fast as it can. */

import {
  SimulatedZooKeeperServer,
  VirtualClock,
  type SimulatedServerOptions,
  type ZooKeeper,
} from '../../src/index.js';
import type { TestClientOptions, ZooKeeperFactory } from './harness.js';

export class SimulatedFactory implements ZooKeeperFactory {
  readonly clock = new VirtualClock();
  readonly server: SimulatedZooKeeperServer;
  private running = false;
  private loop: Promise<void> = Promise.resolve();

  constructor(options: Omit<SimulatedServerOptions, 'clock'> = {}) {
    this.server = new SimulatedZooKeeperServer({ clock: this.clock, ...options });
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

  connect(options: TestClientOptions = {}): Promise<ZooKeeper> {
    return Promise.resolve(this.server.connect(options));
  }

  expire(client: ZooKeeper): Promise<void> {
    this.server.expireSession(client);
    return Promise.resolve();
  }

  disconnect(client: ZooKeeper): Promise<void> {
    this.server.disconnect(client);
    return Promise.resolve();
  }

  private async run(): Promise<void> {
    while (this.running) await this.clock.runNext();
  }
}
