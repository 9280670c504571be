/** Asks for nodes as Zuul does, with nothing but the protocol. */

import type { Clock, JsonObject } from '@nodepool/core';
import { lockRecipe, type HeldLock, type LockRecipe, type ZooKeeper } from '@nodepool/zookeeper';

const REQUESTS = '/nodepool/requests';

export interface RequestOptions {
  readonly priority?: number;
  readonly relativePriority?: number;
  readonly reuse?: boolean;
  readonly provider?: string;
  readonly requestor?: string;
  readonly tenant?: string;
}

/** Nodes in the hands of the requestor. */
export interface TakenNodes {
  readonly ids: readonly string[];
  readonly locks: readonly HeldLock[];
}

export class Requestor {
  private readonly locks: LockRecipe;

  constructor(
    private readonly zk: ZooKeeper,
    private readonly clock: Clock,
  ) {
    this.locks = lockRecipe(zk, { identifier: 'requestor' });
  }

  async submit(labels: readonly string[], options: RequestOptions = {}): Promise<string> {
    const request: JsonObject = {
      state: 'requested',
      state_time: this.clock.now() / 1000,
      created_time: this.clock.now() / 1000,
      declined_by: [],
      node_types: labels,
      nodes: [],
      reuse: options.reuse ?? true,
      requestor: options.requestor ?? 'zuul',
      requestor_data: { build_set_uuid: 'b' },
      provider: options.provider ?? null,
      relative_priority: options.relativePriority ?? 0,
      event_id: 'event',
      tenant_name: options.tenant ?? 'tenant',
      span_info: { trace: 1 },
    };
    const prefix = `${REQUESTS}/${String(options.priority ?? 200).padStart(3, '0')}-`;
    const { path } = await this.zk.create(prefix, Buffer.from(JSON.stringify(request)), {
      mode: 'persistent-sequential',
    });
    return path.slice(REQUESTS.length + 1);
  }

  async read(path: string): Promise<JsonObject> {
    const { data } = await this.zk.get(path);
    return JSON.parse(Buffer.from(data).toString()) as JsonObject;
  }

  async withdraw(id: string): Promise<void> {
    await this.zk.delete(`${REQUESTS}/${id}`);
  }

  /** Locks the nodes of a fulfilled request, takes them into use, removes the request. */
  async take(id: string): Promise<TakenNodes> {
    const { nodes } = await this.read(`${REQUESTS}/${id}`);
    const ids = nodes as string[];
    const locks = await Promise.all(ids.map((node) => this.locks.acquire(`/nodepool/nodes/${node}/lock`)));
    await this.withdraw(id);
    await Promise.all(ids.map((node) => this.change(`/nodepool/nodes/${node}`, { state: 'in-use' })));
    return { ids, locks };
  }

  async giveBack({ ids, locks }: TakenNodes): Promise<void> {
    await Promise.all(ids.map((node) => this.change(`/nodepool/nodes/${node}`, { state: 'used' })));
    await Promise.all(locks.map((lock) => lock.release()));
  }

  /** As Zuul writes: the whole object, without a version. */
  async change(path: string, change: JsonObject): Promise<void> {
    await this.zk.set(path, Buffer.from(JSON.stringify({ ...(await this.read(path)), ...change })));
  }
}
