/** Counts the node records in ZooKeeper and the instances in an example cloud that exist at the same time. */

import { isZooKeeperError, sleep, systemClock, type PersistentWatch } from '@nodepool/zookeeper';
import type { Site } from './site.js';

const NODES = '/nodepool/nodes';
/** Time between two listings of the cloud, milliseconds. */
const LIST_EVERY_MS = 50;

/** Maximum numbers that existed at the same time. */
export interface PeakUsage {
  /**
   * Number of node records. Records of failed instances are excluded, because the record of the retried node exists
   * too.
   */
  readonly records: number;
  readonly instances: number;
}

export class Observer {
  private readonly records = new Set<string>();
  private mostRecords = 0;
  private maxInstances = 0;
  private stopped = false;
  private readonly watch: PersistentWatch;
  private readonly listing: Promise<void>;
  /** Ends when all events so far have been counted, in their order. */
  private counting: Promise<void> = Promise.resolve();

  /** Observes from now on. A launcher must have created `/nodepool/nodes`. */
  constructor(
    private readonly site: Site,
    private readonly endpoint: string,
  ) {
    this.watch = site.zooKeeper.watch(NODES, 'persistent-recursive', {
      onEvent: ({ type, path }) => {
        const id = path.slice(NODES.length + 1);
        if (id.includes('/')) return;
        if (type === 'created') this.next(() => this.created(id));
        else if (type === 'deleted') this.next(() => Promise.resolve(void this.records.delete(id)));
      },
      onReset: () => this.next(() => this.readRecords()),
    });
    this.listing = this.listInstances();
    this.listing.catch(() => undefined);
  }

  /** Returns the maximum numbers. Rejects if the observation failed. */
  async stop(): Promise<PeakUsage> {
    this.stopped = true;
    this.watch.close();
    await Promise.all([this.counting, this.listing]);
    return { records: this.mostRecords, instances: this.maxInstances };
  }

  private next(count: () => Promise<void>): void {
    this.counting = this.counting.then(count);
    this.counting.catch(() => undefined);
  }

  private async created(id: string): Promise<void> {
    const state = await this.stateOf(id);
    if (state === undefined || state === 'deleting') return;
    this.records.add(id);
    this.mostRecords = Math.max(this.mostRecords, this.records.size);
  }

  private async readRecords(): Promise<void> {
    const { children } = await this.site.zooKeeper.children(NODES);
    this.records.clear();
    for (const id of children) await this.created(id);
  }

  /** Returns undefined if the record has been deleted meanwhile. */
  private async stateOf(id: string): Promise<string | undefined> {
    try {
      const { data } = await this.site.zooKeeper.get(`${NODES}/${id}`);
      return (JSON.parse(new TextDecoder().decode(data)) as { readonly state?: string }).state;
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  private async listInstances(): Promise<void> {
    while (!this.stopped) {
      const { length } = await this.site.instances(this.endpoint);
      this.maxInstances = Math.max(this.maxInstances, length);
      await sleep(systemClock, LIST_EVERY_MS);
    }
  }
}
