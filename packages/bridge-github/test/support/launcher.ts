/**
 * A launcher that implements only the protocol: it fulfils requests with nodes that can be logged in to, and deletes
 * the nodes that no program holds.
 */

import type { Clock, JsonObject, Timer } from '@nodepool/core';
import { isZooKeeperError, type ZooKeeper } from '@nodepool/zookeeper';

const ROOT = '/nodepool';
const TICK_MS = 20;

export const LABEL = 'debian';

const POOL = {
  ...{ hostname: 'launcher-1', kind: 'pool', state: 'running', version: '11.0.0', model_api: 0 },
  ...{ id: 'launcher-1-PoolWorker.cloud-main-0', name: 'main', provider_name: 'cloud' },
  ...{ supported_labels: [LABEL], priority: 100, paused: false },
};

export class Launcher {
  mode: 'serve' | 'wait' | 'fail' = 'serve';
  /** Replaces fields of new nodes. */
  login: JsonObject = {};
  readonly deleted: string[] = [];
  readonly launched: string[] = [];
  /** Results of jobs on deleted nodes, null for nodes without one. */
  readonly results: unknown[] = [];
  private pool = '';
  private timer: Timer | undefined;
  private working: Promise<void> = Promise.resolve();
  private stopped = false;

  constructor(
    private readonly zk: ZooKeeper,
    private readonly clock: Clock,
  ) {}

  async start(): Promise<void> {
    for (const path of ['', '/nodes', '/requests', '/requests-lock', '/components', '/components/pool']) {
      await this.zk.create(`${ROOT}${path}`).catch((error: unknown) => {
        if (!isZooKeeperError(error, 'node-exists')) throw error;
      });
    }
    const created = await this.zk.create(`${ROOT}/components/pool/launcher-1`, encode(POOL), {
      mode: 'ephemeral-sequential',
    });
    this.pool = created.path;
    this.tick();
  }

  /** Changes the record of the pool. */
  async publish(changes: JsonObject): Promise<void> {
    await this.zk.set(this.pool, encode({ ...POOL, ...changes }));
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.timer?.cancel();
    await this.working;
    await this.zk.close();
  }

  private tick(): void {
    if (this.stopped) return;
    this.timer = this.clock.schedule(TICK_MS, () => {
      this.working = this.work().then(() => this.tick());
    });
  }

  private async work(): Promise<void> {
    try {
      for (const id of await this.below('requests')) if (this.mode !== 'wait') await unlessChanged(this.serve(id));
      for (const id of await this.below('nodes')) await unlessChanged(this.inspect(id));
    } catch (error) {
      if (!this.stopped) throw error;
    }
  }

  private async serve(id: string): Promise<void> {
    const path = `${ROOT}/requests/${id}`;
    const { data, stat } = await this.zk.get(path);
    const request = decode(data);
    if (request['state'] !== 'requested') return;
    if (this.mode === 'fail') {
      const reasons = { declined_by: [POOL.id], decline_reasons: { [POOL.id]: 'the image is missing' } };
      await this.zk.set(path, encode({ ...request, state: 'failed', ...reasons }), { version: stat.version });
      return;
    }
    const login = {
      ...{ connection_type: 'ssh', connection_port: 22, username: 'runner', host_keys: ['ssh-ed25519 AAAA'] },
      ...this.login,
    };
    const node = { state: 'ready', type: [LABEL], allocated_to: id, provider: 'cloud', pool: 'main', ...login };
    const created = await this.zk.create(`${ROOT}/nodes/`, undefined, { mode: 'persistent-sequential' });
    const nodeId = created.path.slice(`${ROOT}/nodes/`.length);
    await this.zk.set(created.path, encode({ ...node, interface_ip: `node-${nodeId}` }));
    await this.zk.create(`${created.path}/lock`);
    await this.zk.set(path, encode({ ...request, state: 'fulfilled', nodes: [nodeId] }), { version: stat.version });
    this.launched.push(nodeId);
  }

  /** Deletes a node that is not locked and that no request waits for. */
  private async inspect(id: string): Promise<void> {
    const path = `${ROOT}/nodes/${id}`;
    const { data } = await this.zk.get(path);
    if (data.length === 0) return;
    const node = decode(data);
    if (node['state'] === 'hold') return;
    const request = node['allocated_to'] as string;
    if (node['state'] === 'ready' && (await this.zk.exists(`${ROOT}/requests/${request}`)) !== undefined) return;
    await this.zk.transaction([
      { type: 'delete', path: `${path}/lock` },
      { type: 'delete', path },
    ]);
    this.deleted.push(id);
    this.results.push(node['job_result'] ?? null);
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
    const changed = ['no-node', 'not-empty', 'bad-version'] as const;
    if (!changed.some((code) => isZooKeeperError(error, code))) throw error;
  }
}

export function encode(value: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

export function decode(data: Uint8Array): JsonObject {
  return JSON.parse(Buffer.from(data).toString()) as JsonObject;
}
