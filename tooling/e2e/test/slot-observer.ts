/** Observes nodes with slots: a slot never has two nodes, and a node in use never changes. */

import { isZooKeeperError, type PersistentWatch, type ZooKeeper } from '@nodepool/zookeeper';

const NODES = '/nodepool/nodes';

export interface SlotRecord {
  readonly id: string;
  readonly state: string;
  readonly hostname: string;
  readonly username: string;
  readonly slot: number;
  readonly allocated_to: string | null;
  readonly type: readonly string[];
  readonly provider: string | null;
  readonly driver_data: { readonly backing_node?: string; readonly slot?: number } | null;
}

/** Returns the slot of a node of a static machine. */
function slotOfMachine({ hostname, slot }: SlotRecord): string {
  return `slot ${slot} of ${hostname}`;
}

/** States in which the machine is no longer in use. */
const LEAVING: ReadonlySet<string> = new Set(['deleting', 'deleted']);

export class SlotObserver {
  /** Descriptions of violations. */
  readonly problems: string[] = [];
  private readonly records = new Map<string, SlotRecord>();
  private readonly watch: PersistentWatch;
  /** Resolves when all events so far have been processed, in order. */
  private looking: Promise<void> = Promise.resolve();

  /** Observes from now on. A launcher must have created `/nodepool/nodes`. */
  constructor(
    private readonly zooKeeper: ZooKeeper,
    /** Returns the slot of a node; undefined if it has none and is not observed. */
    private readonly slotOf: (record: SlotRecord) => string | undefined = slotOfMachine,
  ) {
    this.watch = zooKeeper.watch(NODES, 'persistent-recursive', {
      onEvent: ({ type, path }) => {
        const id = path.slice(NODES.length + 1);
        if (id === '' || id.includes('/')) return;
        this.next(type === 'deleted' ? async () => void this.records.delete(id) : () => this.look(id));
      },
      onReset: () => this.next(() => this.lookAtAll()),
    });
  }

  /** Resolves with the current records once all events so far have been processed. */
  async now(): Promise<readonly SlotRecord[]> {
    await this.looking;
    return [...this.records.values()];
  }

  async stop(): Promise<void> {
    this.watch.close();
    await this.looking;
  }

  private next(look: () => Promise<void>): void {
    this.looking = this.looking.then(look);
    this.looking.catch(() => undefined);
  }

  private async lookAtAll(): Promise<void> {
    const { children } = await this.zooKeeper.children(NODES);
    for (const id of this.records.keys()) if (!children.includes(id)) this.records.delete(id);
    for (const id of children) await this.look(id);
  }

  private async look(id: string): Promise<void> {
    const record = await this.read(id);
    if (record === undefined || this.slotOf(record) === undefined) return;
    const before = this.records.get(id);
    this.records.set(id, record);
    if (before !== undefined && before.state === 'in-use' && record.state === 'in-use') this.compare(before, record);
    if (LEAVING.has(record.state)) return;
    for (const other of this.records.values()) {
      const sameSlot = this.slotOf(other) === this.slotOf(record) && other.id !== id;
      if (sameSlot && !LEAVING.has(other.state)) await this.confirm(other.id, record);
    }
  }

  /** A record may have been deleted since it was read; its event is then still to come. */
  private async confirm(id: string, record: SlotRecord): Promise<void> {
    const { id: newer } = record;
    const [older, present] = [await this.read(id), await this.read(newer)];
    if (older === undefined || present === undefined || LEAVING.has(older.state) || LEAVING.has(present.state)) return;
    const slot = this.slotOf(record) ?? '';
    this.problems.push(`${slot} has node ${id} (${older.state}) and node ${newer} (${present.state})`);
  }

  private compare(before: SlotRecord, after: SlotRecord): void {
    if (JSON.stringify(before) === JSON.stringify(after)) return;
    this.problems.push(
      `node ${before.id} has changed while in use: ${JSON.stringify(before)}, ${JSON.stringify(after)}`,
    );
  }

  private async read(id: string): Promise<SlotRecord | undefined> {
    try {
      const { data } = await this.zooKeeper.get(`${NODES}/${id}`);
      return { ...(JSON.parse(new TextDecoder().decode(data)) as SlotRecord), id };
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }
}
