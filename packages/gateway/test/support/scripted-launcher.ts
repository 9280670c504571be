/** A launcher without a cloud: it fulfils requests at once, and deletes nodes as a launcher does. */

import { nodeDataWith, seededRandom } from '@nodepool/core/testing';
import type { Clock } from '@nodepool/core';
import { openStore, type NodeEntry, type RequestEntry, type Store } from '@nodepool/store';
import type { ZooKeeper } from '@nodepool/zookeeper';

const POOL = 'launcher-PoolWorker.cloud-main-0';

export class ScriptedLauncher {
  readonly store: Store;
  /** Reaction to requests. */
  mode: 'serve' | 'wait' | 'fail' = 'serve';
  /** Ids of the deleted nodes, in order. */
  readonly deleted: string[] = [];
  private readonly work = new Set<Promise<void>>();
  private stopped = false;

  constructor(
    private readonly zooKeeper: ZooKeeper,
    clock: Clock,
    private readonly labels: readonly string[] = ['debian', 'debian-large', 'windows'],
  ) {
    this.store = openStore(zooKeeper, { clock, random: seededRandom(5), identifier: 'scripted-launcher' });
    this.store.requests.onChange(({ after }) => this.run(after === undefined ? this.deallocate() : this.serve(after)));
    this.store.nodes.onChange(({ after }) => {
      if (after !== undefined) this.run(this.inspect(after));
    });
  }

  async start(): Promise<void> {
    const { components } = this.store;
    this.store.start();
    await this.store.ready();
    components.register({
      hostname: 'launcher',
      kind: 'pool',
      state: 'running',
      version: '1.0.0',
      model_api: 0,
      id: POOL,
      name: 'main',
      provider_name: 'cloud',
      supported_labels: this.labels,
      priority: 100,
      paused: false,
    });
  }

  /** Serves the requests that wait. */
  resume(mode: ScriptedLauncher['mode'] = 'serve'): void {
    this.mode = mode;
    for (const entry of this.store.requests.all()) this.run(this.serve(entry));
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.work);
    this.store.close();
    await this.zooKeeper.close();
  }

  private run(work: Promise<void>): void {
    const settled = work.catch((error: unknown) => {
      // A record that another program changes meanwhile is looked at again after that change.
      if (!this.stopped && !isRace(error)) throw error;
    });
    this.work.add(settled);
    void settled.finally(() => this.work.delete(settled));
  }

  private async serve(entry: RequestEntry): Promise<void> {
    if (this.stopped || this.mode === 'wait' || entry.locked || entry.request.state !== 'requested') return;
    const { mode } = this;
    const create = mode === 'fail' ? [] : entry.request.node_types.map((label) => node(label, entry.id));
    const accepted = await this.store.requests.accept(entry, { create, reuse: [] });
    if (accepted === undefined) return;
    if (mode === 'fail') {
      await accepted.request.release({
        state: 'failed',
        declined_by: [POOL],
        decline_reasons: { [POOL]: 'the image is missing' },
      });
      return;
    }
    const handles = await this.store.nodes.tryLockAll(accepted.created.map((id) => ({ id })));
    try {
      await accepted.request.fulfil((handles ?? []).map((handle) => ({ handle })));
    } catch (error) {
      for (const { lock } of [accepted.request, ...(handles ?? [])]) void lock.release();
      throw error;
    }
  }

  /** Deletes a node that no program holds and no request waits for. */
  private async inspect({ id, locked, node: { state, allocated_to: request } }: NodeEntry): Promise<void> {
    const isComplete = state === 'ready' || state === 'init';
    const isFree = isComplete && (request === null || this.store.requests.get(request) !== undefined);
    if (this.stopped || locked || isFree || state === 'hold') return;
    const handle = await this.store.nodes.tryLock(id, { change: { state: 'deleting' } });
    if (handle !== undefined && (await handle.remove())) this.deleted.push(id);
  }

  private async deallocate(): Promise<void> {
    for (const entry of this.store.nodes.all()) await this.inspect(entry);
  }
}

function node(label: string, request: string): ReturnType<typeof nodeDataWith> {
  return nodeDataWith({
    ...{ state: 'init', type: [label], allocated_to: request, provider: 'cloud', pool: 'main' },
    ...{ interface_ip: '192.0.2.7', public_ipv4: '192.0.2.7', username: 'zuul', connection_type: 'ssh' },
    ...{ connection_port: 22, host_keys: ['ssh-ed25519 AAAAC3'], resources: { cores: 4, instances: 1, ram: 8192 } },
  });
}

function isRace(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'lost-ownership' || code === 'request-gone' || code === 'no-node' || code === 'closed';
}
