/** Observes the states of a requestor's requests and their nodes. */

import { isZooKeeperError, type PersistentWatch, type WatchEvent, type ZooKeeper } from '@nodepool/zookeeper';

const ROOT = '/nodepool';
const RECORD = /^\/nodepool\/(requests|nodes)\/([^/]+)$/;

/** State that stands for a deleted record. */
export const GONE = 'gone';

/** A record and its observed states in order. */
export interface ObservedRecord {
  readonly kind: 'request' | 'node';
  readonly id: string;
  readonly states: readonly string[];
}

interface Record {
  readonly kind: 'request' | 'node';
  readonly id: string;
  readonly states: string[];
}

export class Observer {
  private readonly records = new Map<string, Record>();
  private readonly waiting = new Set<() => void>();
  private readonly watch: PersistentWatch;
  private failure: Error | undefined;

  /** `onState` is called for every new state. */
  constructor(
    private readonly zooKeeper: ZooKeeper,
    private readonly requestor: string,
    private readonly onState: (record: ObservedRecord) => void,
  ) {
    this.watch = zooKeeper.watch(ROOT, 'persistent-recursive', { onEvent: (event) => this.event(event) });
  }

  close(): void {
    this.watch.close();
  }

  /** Records a state that the requestor wrote itself, because a launcher may change it before it can be read. */
  wrote(kind: ObservedRecord['kind'], id: string, state: string): void {
    const path = `${ROOT}/${kind}s/${id}`;
    if (this.records.has(path)) return;
    const record: Record = { kind, id, states: [] };
    this.records.set(path, record);
    this.enter(record, state);
  }

  /** Resolves once the record has had the state. */
  async seen(kind: ObservedRecord['kind'], id: string, state: string, signal: AbortSignal): Promise<void> {
    const key = `${ROOT}/${kind}s/${id}`;
    const done = (): boolean => this.records.get(key)?.states.includes(state) === true;
    if (done()) return;
    let check = (): void => undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        check = () => {
          if (this.failure !== undefined) reject(this.failure);
          else if (done()) resolve();
        };
        this.waiting.add(check);
        signal.addEventListener('abort', () => reject(new Error(`${kind} ${id} is not ${state}`)), { once: true });
      });
    } finally {
      this.waiting.delete(check);
    }
  }

  /** Returns those of the states that were not observed. */
  missed(kind: ObservedRecord['kind'], id: string, states: readonly string[]): readonly string[] {
    const seen = this.records.get(`${ROOT}/${kind}s/${id}`)?.states ?? [];
    return states.filter((state) => !seen.includes(state));
  }

  private event(event: WatchEvent): void {
    const [, group, id] = RECORD.exec(event.path) ?? [];
    if (group === undefined || id === undefined) return;
    const kind = group === 'requests' ? 'request' : 'node';
    if (event.type === 'deleted') {
      const record = this.records.get(event.path);
      if (record !== undefined) this.enter(record, GONE);
    } else if (event.type === 'created' || event.type === 'changed') {
      this.read(kind, id, event.path);
    }
  }

  private read(kind: Record['kind'], id: string, path: string): void {
    this.zooKeeper.get(path).then(
      ({ data }) => {
        const fields = JSON.parse(Buffer.from(data).toString('utf8')) as { readonly [field: string]: unknown };
        if (!this.records.has(path) && !this.isOurs(kind, fields)) return;
        const record = this.records.get(path) ?? { kind, id, states: [] };
        this.records.set(path, record);
        this.enter(record, String(fields['state']));
      },
      (error: unknown) => {
        // The record may be deleted between its change and the read. The deletion has its own event.
        if (isZooKeeperError(error, 'no-node')) return;
        this.failure = new Error(`cannot read ${path}`, { cause: error });
        for (const check of this.waiting) check();
      },
    );
  }

  private isOurs(kind: Record['kind'], fields: { readonly [field: string]: unknown }): boolean {
    if (kind === 'request') return fields['requestor'] === this.requestor;
    return this.records.has(`${ROOT}/requests/${String(fields['allocated_to'])}`);
  }

  private enter(record: Record, state: string): void {
    if (record.states.at(-1) === state) return;
    record.states.push(state);
    this.onState(record);
    for (const check of this.waiting) check();
  }
}
