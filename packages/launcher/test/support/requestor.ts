/** Requests nodes with the requestor library; requests are persistent, as those of Zuul are. */

import type { Clock, JsonObject, JsonValue } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { openRequestor, type Lease, type Requestor as Library } from '@nodepool/requestor';
import type { ZooKeeper } from '@nodepool/zookeeper';

export interface RequestOptions {
  readonly priority?: number;
  readonly relativePriority?: number;
  readonly reuse?: boolean;
  readonly provider?: string;
  readonly requestor?: string;
  readonly tenant?: string;
  readonly data?: JsonValue;
}

/** The nodes of a fulfilled request, in use. */
export interface TakenNodes {
  readonly ids: readonly string[];
  readonly lease: Lease;
}

export class Requestor {
  private readonly byName = new Map<string, Library>();

  constructor(
    private readonly zk: ZooKeeper,
    private readonly clock: Clock,
  ) {}

  async submit(labels: readonly string[], options: RequestOptions = {}): Promise<string> {
    const { requestor = 'zuul', tenant = 'tenant', data = { build_set_uuid: 'b' }, ...rest } = options;
    const { id } = await this.named(requestor).request({
      labels,
      tenant,
      data,
      eventId: 'event',
      durable: true,
      ...rest,
    });
    return id;
  }

  /** Writes a request as another program would. */
  async put(labels: readonly string[], more: JsonObject): Promise<string> {
    const record = { state: 'requested', node_types: labels, requestor: 'zuul', event_id: 'event', ...more };
    const data = Buffer.from(JSON.stringify(record));
    const { path } = await this.zk.create('/nodepool/requests/200-', data, { mode: 'persistent-sequential' });
    return path.slice('/nodepool/requests/'.length);
  }

  async read(path: string): Promise<JsonObject> {
    const { data } = await this.zk.get(path);
    return JSON.parse(Buffer.from(data).toString()) as JsonObject;
  }

  async withdraw(id: string): Promise<void> {
    await this.named('zuul').resume(id).cancel();
  }

  /** Locks the nodes of a fulfilled request, deletes the request and marks the nodes as in use. */
  async take(id: string): Promise<TakenNodes> {
    const lease = await this.named('zuul').resume(id).take();
    return { ids: lease.nodes.map((node) => node.id), lease };
  }

  async giveBack({ lease }: TakenNodes): Promise<void> {
    await lease.return();
  }

  /** Deletes the locks of the nodes, as the end of the session would. */
  async die({ ids }: TakenNodes): Promise<void> {
    for (const directory of ids.map((id) => `/nodepool/nodes/${id}/lock`)) {
      const { children } = await this.zk.children(directory);
      await Promise.all(children.map((name) => this.zk.delete(`${directory}/${name}`)));
    }
  }

  /** Changes a record as Zuul does: it writes the whole object without checking the version. */
  async change(path: string, change: JsonObject): Promise<void> {
    await this.zk.set(path, Buffer.from(JSON.stringify({ ...(await this.read(path)), ...change })));
  }

  private named(name: string): Library {
    let library = this.byName.get(name);
    if (library === undefined) {
      library = openRequestor(this.zk, { name, clock: this.clock, random: seededRandom(this.byName.size) });
      this.byName.set(name, library);
    }
    return library;
  }
}
