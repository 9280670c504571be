/** What the sections of the behaviour suite are given: a place to make clients of, and ways to wait without sleeping. */

import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import {
  isZooKeeperError,
  type Clock,
  type Session,
  type WatchEvent,
  type WatchListener,
  type ZooKeeper,
} from '../../src/index.js';

/** Options of a client that the suite varies. */
export interface TestClientOptions {
  readonly chroot?: string;
  readonly sessionTimeoutMs?: number;
  readonly operationTimeoutMs?: number;
  readonly auth?: readonly { readonly scheme: string; readonly auth: string }[];
}

/** What every client of ZooKeeper can do, whoever wrote it. */
export type PlainZooKeeper = Pick<
  ZooKeeper,
  'session' | 'create' | 'delete' | 'exists' | 'get' | 'set' | 'children' | 'getAcl' | 'setAcl' | 'sync' | 'close'
>;

/** What a client of somebody else's cannot do. */
export interface Inabilities {
  /** When `getAcl` is answered with an error, the process crashes. */
  readonly refusedGetAcl?: boolean;
}

/** A kind of server, with clients for it. */
export interface PlainFactory<Client extends PlainZooKeeper> {
  /** A test begins. Its clients see each other's changes at once. */
  nextTest?(): void;
  /** Starts what the tests need. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** A connected client whose root is the root of the tests unless it has a chroot, which is below that. */
  connect(options?: TestClientOptions): Promise<Client>;
}

/** A kind of server whose connections can be cut. */
export interface ZooKeeperFactory extends PlainFactory<ZooKeeper> {
  /** Ends the session of a client from outside. */
  expire(client: ZooKeeper): Promise<void>;
  /** Cuts the connection of a client, which then reconnects by itself. Resolves when it was cut. */
  disconnect(client: ZooKeeper): Promise<void>;
  /** Cuts the connection of a client, and lets it have another one only after the returned function was called. */
  isolate(client: ZooKeeper): () => void;
  /** The time of the clients; it passes by itself. */
  readonly clock: Clock;
}

/** One test's view of the factory: every client is closed after each test, and each test has a root of its own. */
export class PlainBench<Client extends PlainZooKeeper = PlainZooKeeper> {
  private clients: Client[] = [];
  /** Path of a znode of this test's own. */
  root = '';
  private tests = 0;
  /** A client to look with. */
  zk!: Client;

  constructor(private readonly makeClients: PlainFactory<Client>) {
    const factory = makeClients;
    beforeAll(() => factory.start());
    afterAll(() => factory.stop());
    beforeEach(async () => {
      factory.nextTest?.();
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
  async client(options?: TestClientOptions): Promise<Client> {
    const client = await this.makeClients.connect(options);
    this.clients.push(client);
    return client;
  }

  path(name: string): string {
    return `${this.root}/${name}`;
  }

  sessionOf(client: PlainZooKeeper): Session {
    if (client.session === undefined) throw new Error('the client has no session');
    return client.session;
  }
}

/** As `PlainBench`, for clients whose connections can be cut. */
export class Bench extends PlainBench<ZooKeeper> {
  constructor(readonly factory: ZooKeeperFactory) {
    super(factory);
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
    const resumed = resumption(client);
    await this.factory.disconnect(client);
    await resumed;
  }

  /** Does `work` while the client has no connection; resolves once its session is resumed. */
  async whileIsolated(client: ZooKeeper, work: () => Promise<unknown>): Promise<void> {
    const resumed = resumption(client);
    const heal = this.factory.isolate(client);
    await work();
    heal();
    await resumed;
  }
}

function resumption(client: ZooKeeper): Promise<void> {
  return new Promise((resolve) => {
    const listener = (): void => {
      client.off('resumed', listener);
      resolve();
    };
    client.on('resumed', listener);
  });
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

/** How a call ended, as a text: `ok`, or the code of its error. */
export function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error: unknown) => {
      if (isZooKeeperError(error)) return error.code;
      throw error;
    },
  );
}
