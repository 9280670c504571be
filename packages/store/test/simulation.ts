/** A simulated ensemble with stores on it, for tests. */

import { expect } from '@jest/globals';
import { SimulatedZooKeeperServer, type SimulatedClientOptions } from '@nodepool/zookeeper/simulated';
import { nodeDataWith, VirtualClock, seededRandom } from '@nodepool/core/testing';
import { isZooKeeperError, type ZooKeeper } from '@nodepool/zookeeper';
import { openStore, type RequestEntry, type Store } from '@nodepool/store';
import type { NodeData, NodeRequestData } from '@nodepool/core';

/** Limit of virtual time for any operation in these tests, milliseconds. */
const LIMIT_MS = 600_000;

/** Session time-out of every client, milliseconds. Divisible by three, so that heartbeats are at whole milliseconds. */
const SESSION_TIMEOUT_MS = 9000;

export class Simulation {
  readonly clock = new VirtualClock();
  readonly server: SimulatedZooKeeperServer;
  /** A client for inspection, and for acting as a requestor. */
  readonly other: ZooKeeper;
  private seed: number;
  private readonly closers: (() => Promise<void>)[] = [];

  constructor(options: { readonly seed?: number; readonly latencyMs?: number | (() => number) } = {}) {
    this.seed = options.seed ?? 1;
    this.server = new SimulatedZooKeeperServer({ clock: this.clock, latencyMs: options.latencyMs ?? 1 });
    this.other = this.client();
  }

  client(options?: SimulatedClientOptions): ZooKeeper {
    const client = this.server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS, ...options });
    this.closers.push(() => client.close());
    return client;
  }

  /** Returns a complete store with its own client. */
  async store(zooKeeper = this.client()): Promise<Store> {
    const store = openStore(zooKeeper, {
      clock: this.clock,
      random: seededRandom(this.seed++),
      identifier: 'test-1',
    });
    this.closers.unshift(async () => store.close());
    store.start();
    await this.run(store.ready());
    // The root znodes are created a little later than the caches, which do not need them.
    await this.settled();
    return store;
  }

  /** Advances time until the promise is settled. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    promise.then(done, done);
    if (!(await this.clock.runUntil(() => settled, LIMIT_MS))) throw new Error('the promise was never settled');
    return promise;
  }

  /** Waits until all messages in flight have arrived. */
  async settled(): Promise<void> {
    await this.clock.advance(100);
  }

  async close(): Promise<void> {
    for (const close of this.closers) await this.run(close());
  }

  /** Returns the content of a znode on the server; undefined if it does not exist. */
  json(path: string): unknown {
    const znode = this.server.dump().get(path);
    return znode === undefined ? undefined : JSON.parse(new TextDecoder().decode(znode.data));
  }

  /** Returns the paths on the server with this prefix. */
  paths(prefix: string): string[] {
    return [...this.server.dump().keys()].filter((path) => path.startsWith(prefix));
  }

  /** Returns every contender for any lock on the server. */
  contenders(): string[] {
    return [...this.server.dump().keys()].filter((path) => path.includes('__lock__'));
  }

  /** Writes a znode as another program would, creating its parents. */
  async put(path: string, content: unknown): Promise<void> {
    const data = bytes(typeof content === 'string' ? content : JSON.stringify(content));
    await this.run(this.putAsync(path, data));
    await this.settled();
  }

  /** Expects the caches of a store to equal the server's content. */
  expectMirrored(store: Store): void {
    const dump = this.server.dump();
    const isLocked = (directory: string): boolean =>
      [...dump.keys()].some((path) => path.startsWith(`${directory}/`) && path.includes('__lock__'));
    const ids = (root: string): string[] =>
      [...dump.keys()].filter((path) => path.startsWith(root) && !path.slice(root.length).includes('/')).map(lastName);
    expect([...store.nodes.all()].map((entry) => [entry.id, entry.version, entry.locked])).toEqual(
      ids('/nodepool/nodes/').map((id) => [
        id,
        dump.get(`/nodepool/nodes/${id}`)?.stat.version,
        isLocked(`/nodepool/nodes/${id}/lock`),
      ]),
    );
    expect([...store.requests.all()].map((entry) => [entry.id, entry.version, entry.locked])).toEqual(
      ids('/nodepool/requests/').map((id) => [
        id,
        dump.get(`/nodepool/requests/${id}`)?.stat.version,
        isLocked(`/nodepool/requests-lock/${id}`),
      ]),
    );
  }

  private async putAsync(path: string, data: Uint8Array): Promise<void> {
    for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) {
      await ignoring('node-exists', this.other.create(path.slice(0, end)));
    }
    try {
      await this.other.set(path, data);
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) throw error;
      await this.other.create(path, data);
    }
  }
}

/** Returns the number of writes of a client during `work`. */
export async function writesOf(zooKeeper: ZooKeeper, work: () => Promise<unknown>): Promise<number> {
  const before = zooKeeper.counters.writes;
  await work();
  return zooKeeper.counters.writes - before;
}

export async function ignoring(code: 'node-exists' | 'no-node' | 'not-empty', work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isZooKeeperError(error, code)) throw error;
  }
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Returns a node's record. */
export function nodeData(over: Partial<NodeData> = {}): NodeData {
  return nodeDataWith({
    ...{
      state_time: 1000,
      created_time: 1000,
      provider: 'cloud',
      pool: 'main',
      launcher: 'launcher-1',
      type: ['small'],
    },
    ...{ external_id: 'instance-1', interface_ip: '192.0.2.1', connection_type: 'ssh', connection_port: 22 },
    ...{ username: 'zuul', python_path: 'auto', image_id: 'image', requestor: 'test' },
    resources: { cores: 4, instances: 1, ram: 8192 },
    ...over,
  });
}

/** Returns a request's record. */
export function requestData(over: Partial<NodeRequestData> = {}): NodeRequestData {
  return {
    state: 'requested',
    state_time: 1000,
    node_types: ['small'],
    nodes: [],
    declined_by: [],
    decline_reasons: {},
    reuse: true,
    requestor: 'test',
    requestor_data: null,
    provider: null,
    relative_priority: 0,
    event_id: 'event',
    created_time: 1000,
    tenant_name: null,
    ...over,
  };
}

/** Submits a request and resolves with the store's entry. */
export async function submitted(
  simulation: Simulation,
  store: Store,
  over: Partial<NodeRequestData> = {},
): Promise<RequestEntry> {
  const id = await simulation.run(store.requests.submit(requestData(over), { priority: 100 }));
  const entry = store.requests.get(id);
  if (entry === undefined) throw new Error(`request ${id} is not known`);
  return entry;
}

/** Throws if the value is undefined. */
export function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('expected a value');
  return value;
}

/** Expects two stores to have the same nodes. For thousands of them, `toEqual` takes long: it compares every byte. */
export function expectSameNodes(one: Store, other: Store): void {
  const linesOf = ({ nodes }: Store): string[] =>
    [...nodes.all()].map(({ id, node, version, locked }) => JSON.stringify([id, node, version, locked]));
  const lines = linesOf(one);
  const others = linesOf(other);
  expect(lines).toHaveLength(others.length);
  expect(lines.filter((line, index) => line !== others[index])).toEqual([]);
}
