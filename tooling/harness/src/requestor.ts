/**
 * A requestor in TypeScript, for those who ask for thousands of nodes at once: it does to ZooKeeper what Zuul does, with all
 * requests in flight together.
 */

import {
  type HeldLock,
  type LockRecipe,
  type PersistentWatch,
  type ZooKeeper,
  isZooKeeperError,
} from '@nodepool/zookeeper';
import { systemClock } from '@nodepool/core';

const REQUESTS = '/nodepool/requests';
const NODES = '/nodepool/nodes';
const POOLS = '/nodepool/components/pool';

/** A JSON object of which only some fields are known. */
type Fields = Readonly<Record<string, unknown>>;

/** A request that has ended. */
export interface FinishedRequest {
  readonly id: string;
  readonly state: 'fulfilled' | 'failed';
  /** Ids, in the order of the labels. */
  readonly nodes: readonly string[];
}

/** A node that this requestor has locked and set `in-use`. */
export interface HeldNode {
  readonly id: string;
  readonly lock: HeldLock;
  /** As it was written last. */
  readonly fields: Fields;
}

interface Pending {
  readonly resolve: (finished: FinishedRequest) => void;
  readonly reject: (error: Error) => void;
}

export class Requestor {
  private readonly pending = new Map<string, Pending>();
  /** Requests that changed before we were told of their creation. */
  private readonly early = new Set<string>();
  private submitting = 0;
  private watch: PersistentWatch | undefined;

  constructor(
    private readonly zooKeeper: ZooKeeper,
    private readonly locks: LockRecipe,
    private readonly name: string,
  ) {}

  /** Starts to watch the requests. Resolves once changes are heard of. A launcher makes the znode that they go below. */
  async start(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.watch = this.zooKeeper.watch(REQUESTS, 'persistent-recursive', {
        onEvent: (event) => {
          if (event.type === 'changed' || event.type === 'deleted') this.changed(event.path.slice(REQUESTS.length + 1));
        },
        onReset: () => {
          for (const id of this.pending.keys()) this.read(id);
          resolve();
        },
      });
    });
  }

  stop(): void {
    this.watch?.close();
    for (const [id, { reject }] of this.pending) reject(new Error(`request ${id} is no longer waited for`));
    this.pending.clear();
  }

  /** Puts a request. Resolves once it is there, with its id and with what will become of it. */
  async submit(
    labels: readonly string[],
    priority = 200,
  ): Promise<{ readonly id: string; readonly finished: Promise<FinishedRequest> }> {
    this.submitting += 1;
    try {
      const { path } = await this.zooKeeper.create(
        `${REQUESTS}/${String(priority).padStart(3, '0')}-`,
        encode(this.newRequest(labels)),
        { mode: 'persistent-sequential' },
      );
      const id = path.slice(REQUESTS.length + 1);
      const finished = new Promise<FinishedRequest>((resolve, reject) => this.pending.set(id, { resolve, reject }));
      if (this.early.delete(id)) this.read(id);
      return { id, finished };
    } finally {
      this.submitting -= 1;
      if (this.submitting === 0) this.early.clear();
    }
  }

  /** Removes a request: before it ended, it is withdrawn; after, its nodes are kept by whoever has locked them. */
  async remove(id: string): Promise<void> {
    this.pending.delete(id);
    await this.zooKeeper.delete(`${REQUESTS}/${id}`);
  }

  /** Locks the nodes of a fulfilled request, removes the request, and sets the nodes `in-use`. */
  async take(request: FinishedRequest): Promise<HeldNode[]> {
    const held = await Promise.all(
      request.nodes.map(async (id) => {
        const lock = await this.locks.acquire(`${NODES}/${id}/lock`);
        const { data } = await this.zooKeeper.get(`${NODES}/${id}`);
        return { id, lock, fields: decode(data) };
      }),
    );
    await this.remove(request.id);
    return await Promise.all(held.map(async (node) => ({ ...node, fields: await this.setState(node, 'in-use') })));
  }

  /** Sets a node `used` and gives its lock up: it is to be deleted. */
  async giveBack(node: HeldNode): Promise<void> {
    await this.setState(node, 'used');
    await node.lock.release();
  }

  private async setState(node: HeldNode, state: string): Promise<Fields> {
    const fields = { ...node.fields, state, state_time: systemClock.now() / 1000 };
    // Without a version, as Zuul does: it holds the lock.
    await this.zooKeeper.set(`${NODES}/${node.id}`, encode(fields));
    return fields;
  }

  private newRequest(labels: readonly string[]): Fields {
    const now = systemClock.now() / 1000;
    return {
      state: 'requested',
      state_time: now,
      created_time: now,
      declined_by: [],
      node_types: labels,
      nodes: [],
      reuse: true,
      requestor: this.name,
      requestor_data: null,
      provider: null,
      relative_priority: 0,
      event_id: null,
      tenant_name: null,
    };
  }

  private changed(id: string): void {
    if (this.pending.has(id)) this.read(id);
    else if (this.submitting > 0) this.early.add(id);
  }

  /** Reads a request and tells whoever waits for it if it has ended. */
  private read(id: string): void {
    this.zooKeeper.get(`${REQUESTS}/${id}`).then(
      ({ data }) => this.settle(id, decode(data)),
      (error: unknown) => {
        const waiting = this.pending.get(id);
        this.pending.delete(id);
        waiting?.reject(new Error(`request ${id} cannot be read any more`, { cause: error }));
      },
    );
  }

  private settle(id: string, request: Fields): void {
    const { state, nodes } = request;
    if (state !== 'fulfilled' && state !== 'failed') return;
    const waiting = this.pending.get(id);
    this.pending.delete(id);
    waiting?.resolve({ id, state, nodes: Array.isArray(nodes) ? nodes.map(String) : [] });
  }
}

/** Resolves once registered pools, those in `ignoring` apart, offer all of the labels. */
export async function labelsOffered(
  zooKeeper: ZooKeeper,
  labels: readonly string[],
  signal: AbortSignal,
  ignoring: ReadonlySet<string> = new Set(),
): Promise<void> {
  await conditionMet(zooKeeper, POOLS, signal, async () => {
    const offered = new Set<unknown>();
    for (const name of await registeredPools(zooKeeper)) {
      if (ignoring.has(name)) continue;
      const pool = decode((await zooKeeper.get(`${POOLS}/${name}`)).data);
      if (Array.isArray(pool['supported_labels'])) for (const label of pool['supported_labels']) offered.add(label);
    }
    return labels.every((label) => offered.has(label));
  });
}

/** Names of the znodes with which launchers have registered their pools. */
export async function registeredPools(zooKeeper: ZooKeeper): Promise<ReadonlySet<string>> {
  try {
    return new Set((await zooKeeper.children(POOLS)).children);
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return new Set();
    throw error;
  }
}

/** Resolves once there are no records of nodes any more but so many. A launcher must have made the znode that they are below. */
export async function noNodesLeft(zooKeeper: ZooKeeper, signal: AbortSignal, but = 0): Promise<void> {
  await conditionMet(zooKeeper, NODES, signal, async () => (await zooKeeper.children(NODES)).children.length <= but);
}

/**
 * Resolves once `test` says so; asks it whenever something changed at or below `path`, one question at a time. A test that
 * fails because a znode went while it looked is asked again, for that is a change too.
 */
export async function conditionMet(
  zooKeeper: ZooKeeper,
  path: string,
  signal: AbortSignal,
  test: () => Promise<boolean>,
): Promise<void> {
  signal.throwIfAborted();
  let asking = false;
  let askAgain = false;
  let watch: PersistentWatch | undefined;
  let giveUp = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const ask = async (): Promise<void> => {
        askAgain = true;
        if (asking) return;
        asking = true;
        while (askAgain) {
          askAgain = false;
          try {
            if (await test()) resolve();
          } catch (error) {
            if (!isZooKeeperError(error, 'no-node')) reject(error instanceof Error ? error : new Error(String(error)));
          }
        }
        asking = false;
      };
      const changed = (): void => void ask();
      giveUp = () => reject(signal.reason as Error);
      signal.addEventListener('abort', giveUp, { once: true });
      watch = zooKeeper.watch(path, 'persistent-recursive', { onEvent: changed, onReset: changed });
    });
  } finally {
    signal.removeEventListener('abort', giveUp);
    watch?.close();
  }
}

function encode(fields: Fields): Uint8Array {
  return Buffer.from(JSON.stringify(fields));
}

function decode(data: Uint8Array): Fields {
  const value: unknown = JSON.parse(Buffer.from(data).toString('utf8'));
  if (typeof value !== 'object' || value === null) throw new Error(`a JSON object was expected, not ${String(value)}`);
  return value as Fields;
}
