/** The harness of the behaviour suite: creates clients, and waits without sleeping. */

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
  readonly maxAnswerBytes?: number;
  readonly auth?: readonly { readonly scheme: string; readonly auth: string }[];
}

/** The operations of every ZooKeeper client, also of the reference. */
export type PlainZooKeeper = Pick<
  ZooKeeper,
  'session' | 'create' | 'delete' | 'exists' | 'get' | 'set' | 'children' | 'getAcl' | 'setAcl' | 'sync' | 'close'
>;

/** Limits of the reference client. */
export interface ClientLimitations {
  /** True if an error answer to `getAcl` crashes the process. */
  readonly refusedGetAcl?: boolean;
}

/** A type of server, and clients for it. */
export interface PlainFactory<Client extends PlainZooKeeper> {
  /** Starts a test, whose clients see each other's changes at once. */
  nextTest?(): void;
  /** Resolves once every server has applied the earlier writes; uses names below `root`. */
  applied?(root: string): Promise<void>;
  /** Starts the servers. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Returns a connected client. Its chroot is below the root of the tests. */
  connect(options?: TestClientOptions): Promise<Client>;
}

/** A type of server with connections that can be cut. */
export interface ZooKeeperFactory extends PlainFactory<ZooKeeper> {
  /** Expires the session of a client at the server. */
  expire(client: ZooKeeper): Promise<void>;
  /** Cuts the connection of a client, which then reconnects. Resolves once it is cut. */
  disconnect(client: ZooKeeper): Promise<void>;
  /** Cuts the connection of a client, which reconnects only after the returned function was called. */
  isolate(client: ZooKeeper): () => void;
  /** The clock of the clients, which advances by itself. */
  readonly clock: Clock;
}

/** The factory for one test: each test has its own root, and its clients are closed after it. */
export class PlainHarness<Client extends PlainZooKeeper = PlainZooKeeper> {
  private clients: Client[] = [];
  /** Returns a path below the root of the test. */
  root = '';
  private tests = 0;
  /** A client for checks. */
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

  /** Returns a connected client. */
  async client(options?: TestClientOptions): Promise<Client> {
    const client = await this.makeClients.connect(options);
    this.clients.push(client);
    return client;
  }

  path(name: string): string {
    return `${this.root}/${name}`;
  }

  /** Resolves once every server of an ensemble has applied the earlier writes. */
  async applied(): Promise<void> {
    await this.makeClients.applied?.(this.root);
  }

  sessionOf(client: PlainZooKeeper): Session {
    if (client.session === undefined) throw new Error('the client has no session');
    return client.session;
  }
}

/** A `PlainHarness` for clients whose connections can be cut. */
export class Harness extends PlainHarness<ZooKeeper> {
  constructor(readonly factory: ZooKeeperFactory) {
    super(factory);
  }

  /** Expires the session of a client. Resolves with the client's next session. */
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

  /** Cuts the connection. Resolves once the session is resumed. */
  async reconnect(client: ZooKeeper): Promise<void> {
    const resumed = resumption(client);
    await this.factory.disconnect(client);
    await resumed;
  }

  /** Runs `work` while the client has no connection. Resolves once its session is resumed. */
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

/** Collects items, for tests that wait for a number of them. */
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

  /** Resolves with all items once there are `count` of them. */
  atLeast(count: number): Promise<readonly T[]> {
    if (this.items.length >= count) return Promise.resolve(this.items);
    return new Promise((resolve) => this.waiters.push({ count, resolve }));
  }
}

/** A watch listener that collects its events, and `reset` for each reset. */
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

/** Returns the outcome of a call as text: `ok` or the code of its error. */
export function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error: unknown) => {
      if (isZooKeeperError(error)) return error.code;
      throw error;
    },
  );
}
