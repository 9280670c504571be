/** What the sections of the behaviour suite are given: a place to make clients of, and ways to wait without sleeping. */

import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import type { Clock, Session, WatchEvent, WatchListener, ZooKeeper } from '../../src/index.js';

/** Options of a client that the suite varies. */
export interface TestClientOptions {
  readonly chroot?: string;
  readonly sessionTimeoutMs?: number;
  readonly operationTimeoutMs?: number;
}

/** A kind of server, with clients for it. */
export interface ZooKeeperFactory {
  /** Starts what the tests need. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** A client whose root is the root of the tests unless it has a chroot, which is below that. */
  connect(options?: TestClientOptions): Promise<ZooKeeper>;
  /** Ends the session of a client from outside. */
  expire(client: ZooKeeper): Promise<void>;
  /** Cuts the connection of a client, which then reconnects by itself. Resolves when it was cut. */
  disconnect(client: ZooKeeper): Promise<void>;
  /** The time of the clients; it passes by itself. */
  readonly clock: Clock;
}

/** One test's view of the factory: every client is closed, and everything that was created removed, after each test. */
export class Bench {
  private clients: ZooKeeper[] = [];
  /** Path of a znode of this test's own. */
  root = '';
  private tests = 0;
  /** A client to look with. */
  zk!: ZooKeeper;

  constructor(readonly factory: ZooKeeperFactory) {
    beforeAll(() => factory.start());
    afterAll(() => factory.stop());
    beforeEach(async () => {
      this.root = `/test${this.tests++}`;
      this.zk = await this.client();
      await this.zk.create(this.root);
    });
    afterEach(async () => {
      await Promise.all(this.clients.map((client) => client.close()));
      this.clients = [];
    });
  }

  /** A connected client. */
  async client(options?: TestClientOptions): Promise<ZooKeeper> {
    const client = await this.factory.connect(options);
    this.clients.push(client);
    await client.connected();
    return client;
  }

  path(name: string): string {
    return `${this.root}/${name}`;
  }

  sessionOf(client: ZooKeeper): Session {
    if (client.session === undefined) throw new Error('the client has no session');
    return client.session;
  }

  /** Expires the session of a client; resolves with the client's next session. */
  async expire(client: ZooKeeper): Promise<Session> {
    const next = new Promise<Session>((resolve) => {
      const listener = (session: Session): void => {
        client.off('session', listener);
        resolve(session);
      };
      client.on('session', listener);
    });
    await this.factory.expire(client);
    return next;
  }

  /** Cuts the connection; resolves once the session is resumed. */
  async reconnect(client: ZooKeeper): Promise<void> {
    const resumed = new Promise<void>((resolve) => {
      const listener = (): void => {
        client.off('resumed', listener);
        resolve();
      };
      client.on('resumed', listener);
    });
    await this.factory.disconnect(client);
    await resumed;
  }
}

/** Collects what it is told, for tests that wait until there is enough of it. */
export class Collector<T> {
  readonly items: T[] = [];
  private waiters: { readonly count: number; readonly resolve: (items: readonly T[]) => void }[] = [];

  readonly add = (item: T): void => {
    this.items.push(item);
    this.waiters = this.waiters.filter(({ count, resolve }) => {
      if (this.items.length < count) return true;
      resolve(this.items);
      return false;
    });
  };

  /** Resolves with all items once there are so many. */
  atLeast(count: number): Promise<readonly T[]> {
    if (this.items.length >= count) return Promise.resolve(this.items);
    return new Promise((resolve) => this.waiters.push({ count, resolve }));
  }
}

/** A watch listener that collects events, and resets as the text `reset`. */
export class EventLog extends Collector<string> implements WatchListener {
  onEvent(event: WatchEvent): void {
    this.add(`${event.type} ${event.path}`);
  }

  onReset(): void {
    this.add('reset');
  }
}

export const bytes = (text: string): Uint8Array => Buffer.from(text);
export const textOf = (data: Uint8Array): string => Buffer.from(data).toString();
