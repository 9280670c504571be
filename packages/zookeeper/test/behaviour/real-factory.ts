/** Real servers behind relays, one per client, that can be cut. */

import { once } from 'node:events';
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { connect, systemClock, type ZooKeeper } from '../../src/index.js';
import type { TestClientOptions, ZooKeeperFactory } from './harness.js';

/** Milliseconds. A session lasts at least two ticks, and tests wait for its end. */
const TICK_MS = 500;
/** Milliseconds: the session of a test that does not name one, which a busy machine must not end. */
const LONG_SESSION_MS = 60_000;

export class RealFactory implements ZooKeeperFactory {
  readonly clock = systemClock;
  private zooKeeper: ZooKeeperForTests | undefined;
  private readonly relays = new Map<ZooKeeper, Relay>();
  /** A client of each server, without relays. */
  private direct: readonly ZooKeeper[] = [];
  private tests = 0;

  /** Selects the server of an ensemble for the next test, in turn. */
  constructor(private readonly ensembleSize = 1) {}

  async start(): Promise<void> {
    const { ensembleSize } = this;
    const settings = { maxSessionTimeout: LONG_SESSION_MS };
    this.zooKeeper = await zooKeeperForTests({ tickTime: TICK_MS, ensembleSize, settings });
  }

  nextTest(): void {
    this.tests++;
  }

  /** A server answers a write of its own client when it has applied it, after all earlier ones. */
  async applied(root: string): Promise<void> {
    if (this.ensembleSize === 1) return;
    const slash = this.servers.indexOf('/');
    if (this.direct.length === 0) {
      const addresses = this.servers.slice(0, slash).split(',');
      this.direct = addresses.map((servers) => connect({ servers, chroot: this.servers.slice(slash) }));
    }
    await Promise.all(
      this.direct.map((zk) => zk.create(`${root}/applied-`, undefined, { mode: 'persistent-sequential' })),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.direct.map((zk) => zk.close()));
    for (const relay of this.relays.values()) relay.close();
    await this.zooKeeper?.stop();
  }

  /** `host:port/chroot` of the server itself, without a relay. */
  get servers(): string {
    if (this.zooKeeper === undefined) throw new Error('start it first');
    return this.zooKeeper.servers;
  }

  async connect(options: TestClientOptions = {}): Promise<ZooKeeper> {
    const slash = this.servers.indexOf('/');
    const addresses = this.servers.slice(0, slash).split(',');
    const relay = new Relay(addresses[this.tests % addresses.length] ?? '');
    await relay.listening;
    const client = connect({
      sessionTimeoutMs: LONG_SESSION_MS,
      ...options,
      servers: relay.address,
      chroot: this.servers.slice(slash) + (options.chroot ?? ''),
      reconnectDelayMs: [20, 100],
    });
    this.relays.set(client, relay);
    await client.connected();
    return client;
  }

  expire(client: ZooKeeper): Promise<void> {
    const heal = this.isolate(client);
    return new Promise((resolve) => {
      const onLost = (): void => {
        client.off('lost', onLost);
        heal();
        resolve();
      };
      client.on('lost', onLost);
    });
  }

  disconnect(client: ZooKeeper): Promise<void> {
    this.relayOf(client).cut();
    return Promise.resolve();
  }

  isolate(client: ZooKeeper): () => void {
    const relay = this.relayOf(client);
    relay.open = false;
    relay.cut();
    return () => {
      relay.open = true;
    };
  }

  private relayOf(client: ZooKeeper): Relay {
    const relay = this.relays.get(client);
    if (relay === undefined) throw new Error('not a client of this factory');
    return relay;
  }
}

/** Relays bytes between one client and the server. */
class Relay {
  open = true;
  readonly listening: Promise<unknown>;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  constructor(target: string) {
    const colon = target.lastIndexOf(':');
    this.server = createServer((socket) => {
      if (!this.open) {
        socket.destroy();
        return;
      }
      this.join(socket, createConnection(Number(target.slice(colon + 1)), target.slice(0, colon)));
    });
    this.server.listen(0, '127.0.0.1');
    this.listening = once(this.server, 'listening');
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private join(one: Socket, other: Socket): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      from.setNoDelay(true);
      this.sockets.add(from);
      from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => from.destroy());
      from.on('close', () => {
        this.sockets.delete(from);
        to.destroy();
      });
    }
  }
}
