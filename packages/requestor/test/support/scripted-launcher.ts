/**
 * A launcher that implements only the protocol: it fulfils every request at once, and deletes the nodes that no program
 * holds.
 */

import type { Clock, JsonObject, Timer } from '@nodepool/core';
import { isZooKeeperError, type ZooKeeper } from '@nodepool/zookeeper';

const ROOT = '/nodepool';
const TICK_MS = 250;

export const POOL = {
  hostname: 'launcher-1',
  kind: 'pool',
  state: 'running',
  version: '11.0.0',
  model_api: 0,
  id: 'launcher-1-PoolWorker.cloud-main-0',
  name: 'main',
  provider_name: 'cloud',
  supported_labels: ['small', 'big'],
  priority: 100,
  paused: false,
};

export class ScriptedLauncher {
  /** Reaction to requests. */
  mode: 'serve' | 'wait' | 'fail' = 'serve';
  /** Ids of nodes in the order of their deletion, each with what `onDelete` saw. */
  readonly deleted: string[] = [];
  onDelete: (id: string) => void = () => undefined;
  private timer: Timer | undefined;
  private stopped = false;

  constructor(
    private readonly zk: ZooKeeper,
    private readonly clock: Clock,
  ) {}

  async start(): Promise<void> {
    for (const path of ['', '/nodes', '/requests', '/requests-lock', '/components', '/components/pool']) {
      await this.zk.create(`${ROOT}${path}`);
    }
    await this.zk.create(`${ROOT}/components/pool/launcher-1`, encode(POOL), { mode: 'ephemeral-sequential' });
    this.tick();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.zk.close();
  }

  private tick(): void {
    if (this.stopped) return;
    this.timer = this.clock.schedule(TICK_MS, () => {
      this.work().then(
        () => this.tick(),
        (error: unknown) => {
          if (!this.stopped) throw error;
        },
      );
    });
  }

  private async work(): Promise<void> {
    for (const id of await this.below('requests')) {
      if (this.mode !== 'wait') await unlessChanged(this.serve(`${ROOT}/requests/${id}`, id));
    }
    for (const id of await this.below('nodes')) await unlessChanged(this.inspect(`${ROOT}/nodes/${id}`, id));
  }

  private async serve(path: string, id: string): Promise<void> {
    const { data, stat } = await this.zk.get(path);
    const request = decode(data);
    if (request['state'] !== 'requested') return;
    if (this.mode === 'fail') {
      await this.zk.set(
        path,
        encode({
          ...request,
          state: 'failed',
          declined_by: [POOL.id],
          decline_reasons: { [POOL.id]: 'the image is missing' },
        }),
        {
          version: stat.version,
        },
      );
      return;
    }
    const nodes: string[] = [];
    for (const label of request['node_types'] as string[]) {
      const node = { state: 'ready', type: [label], allocated_to: id, provider: 'cloud', pool: 'main', x_future: 1 };
      const created = await this.zk.create(`${ROOT}/nodes/`, encode(node), { mode: 'persistent-sequential' });
      await this.zk.create(`${created.path}/lock`);
      nodes.push(created.path.slice(`${ROOT}/nodes/`.length));
    }
    await this.zk.set(path, encode({ ...request, state: 'fulfilled', nodes }), { version: stat.version });
  }

  /** Deletes a node that is not locked and that no request waits for. */
  private async inspect(path: string, id: string): Promise<void> {
    const node = decode((await this.zk.get(path)).data);
    const request = node['allocated_to'] as string;
    if (node['state'] === 'hold') return;
    if (node['state'] === 'ready' && (await this.zk.exists(`${ROOT}/requests/${request}`)) !== undefined) return;
    await this.zk.transaction([
      { type: 'delete', path: `${path}/lock` },
      { type: 'delete', path },
    ]);
    this.deleted.push(id);
    this.onDelete(id);
  }

  private async below(name: string): Promise<readonly string[]> {
    return (await this.zk.children(`${ROOT}/${name}`)).children;
  }
}

/** A record or a lock that another program changes meanwhile is looked at again in the next turn. */
async function unlessChanged(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (
      !isZooKeeperError(error, 'no-node') &&
      !isZooKeeperError(error, 'not-empty') &&
      !isZooKeeperError(error, 'bad-version')
    ) {
      throw error;
    }
  }
}

export function encode(value: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

export function decode(data: Uint8Array): JsonObject {
  return JSON.parse(Buffer.from(data).toString()) as JsonObject;
}
