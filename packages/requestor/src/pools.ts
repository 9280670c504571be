/** The pools that launchers have registered, and the state of a request that they show. */

import { Emitter, type Clock, type Logger, type NodeRequest } from '@nodepool/core';
import { componentsPath, decodeComponent, type PoolComponentData } from '@nodepool/store';
import { treeCache, type CallOptions, type TreeCache, type ZooKeeper } from '@nodepool/zookeeper';

const POOLS = componentsPath('pool');

/** The Python Nodepool records no reason. */
const UNKNOWN_REASON = 'the log of its launcher says why';

export class PoolRegistry {
  private readonly pools = new Map<string, PoolComponentData>();
  private readonly changes: Emitter<void>;
  private tree: TreeCache | undefined;

  constructor(
    private readonly zooKeeper: ZooKeeper,
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {
    this.changes = new Emitter((error) => log.error('A listener to changes of pools failed', error));
  }

  /** Resolves once the registered pools are known; the first call starts to watch them. */
  async ready(options: CallOptions): Promise<void> {
    this.tree ??= treeCache(
      this.zooKeeper,
      POOLS,
      {
        onPut: ({ path, data }) => this.put(path, data),
        onRemove: ({ path }) => {
          if (this.pools.delete(path)) this.changes.emit();
        },
      },
      {
        clock: this.clock,
        onWarning: (error) => this.log.warn('The registered pools cannot be read', { error }),
      },
    );
    await this.tree.ready(options);
  }

  onChange(listener: () => void): () => void {
    return this.changes.on(listener);
  }

  /** Labels that registered pools offer. */
  labels(): ReadonlySet<string> {
    return new Set([...this.pools.values()].flatMap((pool) => pool.supported_labels));
  }

  /** Returns the reasons for the state of a request that the registered pools show. */
  reasons(request: NodeRequest): readonly string[] {
    return requestReasons(request, [...this.pools.values()]);
  }

  close(): void {
    this.tree?.close();
  }

  private put(path: string, data: Uint8Array): void {
    const component = path === POOLS ? undefined : decodeComponent(data, 'pool');
    if (component === undefined) return;
    if (typeof component === 'string' || !isPool(component)) this.pools.delete(path);
    else this.pools.set(path, component);
    this.changes.emit();
  }
}

function isPool(component: object): component is PoolComponentData {
  return 'supported_labels' in component;
}

/** Returns the reasons for the state of a request, as sentences, that the registered pools show. */
export function requestReasons(request: NodeRequest, pools: readonly PoolComponentData[]): readonly string[] {
  const { state, node_types: labels, declined_by: declinedBy, decline_reasons: reasons } = request;
  if (state === 'fulfilled') return [];
  const declined = declinedBy.map((id) => `${nameOf(id, pools)} declined: ${reasons[id] ?? UNKNOWN_REASON}`);
  if (state === 'pending') {
    const isOffered = pools.some((pool) => labels.every((label) => pool.supported_labels.includes(label)));
    return [
      ...declined,
      isOffered
        ? 'a launcher has accepted the request and launches its nodes'
        : 'a launcher works on the request, although no registered pool offers its labels now',
    ];
  }
  if (state === 'failed') return declined.length > 0 ? declined : ['no pool declined, but every launch failed'];
  return [...declined, ...waitsFor(request, pools)];
}

function waitsFor(
  { node_types: labels, provider, declined_by: declinedBy }: NodeRequest,
  pools: readonly PoolComponentData[],
): readonly string[] {
  const offered = new Set(pools.flatMap((pool) => pool.supported_labels));
  const missing = [...new Set(labels)].filter((label) => !offered.has(label));
  if (missing.length > 0) return [`no registered pool offers ${missing.join(', ')}`];
  const able = pools.filter(({ supported_labels: supported }) => labels.every((label) => supported.includes(label)));
  if (able.length === 0) return ['no single pool offers all of the labels'];
  const open = able.filter(({ id }) => !declinedBy.includes(id));
  if (open.length === 0) return ['no pool that offers the labels is left'];
  const wanted = open.filter(({ provider_name: name }) => provider === null || name === provider);
  // Other providers serve the request if no pool of its provider can.
  const candidates = wanted.length === 0 ? open : wanted;
  const names = candidates.map(({ id }) => nameOf(id, pools)).join(', ');
  return candidates.every(({ paused }) => paused)
    ? [`waits for capacity of ${names}: limits are in use, the cloud is full, or the provider is out of service`]
    : [`waits for ${names}`];
}

function nameOf(id: string, pools: readonly PoolComponentData[]): string {
  const pool = pools.find((candidate) => candidate.id === id);
  return pool === undefined
    ? `pool ${id}`
    : `pool ${pool.name} of provider ${pool.provider_name} (launcher ${pool.hostname})`;
}
