/** Observes all records of requests and nodes: allocations, slots of static machines, and writes of requests. */

import { isZooKeeperError, type PersistentWatch, type ZooKeeper } from '@nodepool/zookeeper';

const NODES = '/nodepool/nodes';
const REQUESTS = '/nodepool/requests';

interface NodeRecord {
  readonly state: string;
  readonly hostname: string | null;
  readonly slot: number | null;
  readonly allocated_to: string | null;
}

export interface SeenFleet {
  /** Nodes that were allocated to two requests, with a use by the first. */
  readonly reallocated: readonly string[];
  /** Slots with two nodes that requests use. */
  readonly sharedSlots: readonly string[];
  /** Pairs of nodes that were registered for one slot, even for a moment. */
  readonly doubledSlots: readonly string[];
  readonly writes: { readonly most: number; readonly mean: number };
}

export class FleetObserver {
  private readonly nodes = new Map<string, NodeRecord>();
  /** The request that used a node last, by node. */
  private readonly users = new Map<string, string>();
  private readonly writes = new Map<string, number>();
  private readonly reallocated: string[] = [];
  private readonly shared = new Set<string>();
  private readonly doubled = new Set<string>();
  private readonly watches: readonly PersistentWatch[];
  private looking: Promise<void> = Promise.resolve();

  constructor(private readonly zooKeeper: ZooKeeper) {
    this.watches = [
      zooKeeper.watch(NODES, 'persistent-recursive', {
        onEvent: ({ type, path }) => {
          const id = path.slice(NODES.length + 1);
          if (id === '' || id.includes('/')) return;
          this.looking = this.looking.then(() => (type === 'deleted' ? void this.nodes.delete(id) : this.look(id)));
        },
        onReset: () => undefined,
      }),
      zooKeeper.watch(REQUESTS, 'persistent-recursive', {
        onEvent: ({ type, path }) => {
          if (type !== 'deleted') this.writes.set(path, (this.writes.get(path) ?? 0) + 1);
        },
        onReset: () => undefined,
      }),
    ];
  }

  async stop(): Promise<SeenFleet> {
    for (const watch of this.watches) watch.close();
    await this.looking;
    const writes = [...this.writes].filter(([path]) => path !== REQUESTS).map(([, count]) => count);
    const sum = writes.reduce((total, count) => total + count, 0);
    return {
      reallocated: this.reallocated,
      sharedSlots: [...this.shared],
      doubledSlots: [...this.doubled],
      writes: { most: Math.max(0, ...writes), mean: sum / Math.max(1, writes.length) },
    };
  }

  private async look(id: string): Promise<void> {
    const record = await this.read(id);
    if (record === undefined) return;
    this.nodes.set(id, record);
    const { state, allocated_to: request, hostname, slot } = record;
    const user = this.users.get(id);
    if (user !== undefined && request !== null && request !== user && state === 'ready') {
      this.reallocated.push(`node ${id} was used by ${user} and is allocated to ${request}`);
    }
    if (state === 'in-use' && request !== null) this.users.set(id, request);
    if (slot === null || !isPresent(record)) return;
    for (const [other, theirs] of this.nodes) {
      if (other === id || theirs.hostname !== hostname || theirs.slot !== slot || !isPresent(theirs)) continue;
      const present = await this.read(other);
      if (present === undefined || !isPresent(present)) continue;
      this.doubled.add([id, other].sort().join(' '));
      if (isUsed(record) && isUsed(present)) {
        this.shared.add(`slot ${slot} of ${hostname ?? ''}: nodes ${id} (${state}) and ${other} (${present.state})`);
      }
    }
  }

  private async read(id: string): Promise<NodeRecord | undefined> {
    try {
      const { data } = await this.zooKeeper.get(`${NODES}/${id}`);
      return data.length === 0 ? undefined : (JSON.parse(new TextDecoder().decode(data)) as NodeRecord);
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }
}

function isPresent({ state }: NodeRecord): boolean {
  return state === 'ready' || state === 'in-use' || state === 'hold';
}

function isUsed({ state, allocated_to: request }: NodeRecord): boolean {
  return state === 'in-use' || state === 'hold' || (state === 'ready' && request !== null);
}
