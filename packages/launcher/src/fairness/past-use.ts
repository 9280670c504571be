/**
 * Keeps the past use of tenants in ZooKeeper, so that it survives the restart of launchers. Every launcher computes it
 * from the records; the one that is first each minute writes it, and a launcher reads it when fair shares begin.
 */

import { isJsonObject, WorkQueue, type JsonObject, type Reconciled } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { NODEPOOL_ROOT } from '@nodepool/store';
import { isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import type { Amounts } from './account.js';
import type { FairFacts, ServiceOrder } from './service-order.js';

export const PAST_USE_PATH = `${NODEPOOL_ROOT}/past-use`;

/** Time between two writes, milliseconds. */
const INTERVAL_MS = 60_000;
/** Limit of the tenants and projects that are written, those with the greatest use first. */
const MAX_ENTRIES = 1000;
/** The only key of the queue. */
const USE = 'use';

interface Saved {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly entries: readonly SavedUse[];
}

interface SavedUse {
  readonly tenant: string | null;
  readonly project?: string;
  readonly past: Readonly<Amounts>;
}

export class PastUse implements Controller {
  private readonly queue: WorkQueue<typeof USE>;
  /** The facts whose past use was read. */
  private restored: FairFacts | undefined;

  constructor(
    private readonly context: LauncherContext,
    private readonly order: ServiceOrder,
  ) {
    this.queue = new WorkQueue({
      ...context,
      name: () => 'keep the past use of tenants',
      backOff: { firstMs: 1000, longestMs: INTERVAL_MS },
      reconcile: (_, { signal }) => this.reconcile({ signal }),
    });
  }

  apply({ fairShares }: NodepoolConfig): void {
    if (fairShares !== undefined) this.queue.add(USE);
  }

  stop(): void {
    this.queue.abort(new Error('the launcher is stopped'));
  }

  private async reconcile(call: CallOptions): Promise<Reconciled> {
    const { fair } = this.order;
    if (fair === undefined) return 'done';
    const { clock, store } = this.context;
    const read = await this.read(call);
    if (this.restored !== fair) {
      for (const { tenant, project, past } of read?.saved.entries ?? []) {
        fair.use.restore(tenant, project, past, read?.saved.at ?? 0);
      }
      this.restored = fair;
    }
    fair.starvation.prune();
    const entries = greatest([...fair.use.pastUses()]);
    // A clock that was corrected may have written a time in the future.
    const age = Math.abs(clock.now() - (read?.saved.at ?? -Infinity));
    if (store.complete && age >= INTERVAL_MS) await this.write(entries, read?.version, call);
    return { requeueAfterMs: INTERVAL_MS };
  }

  private async read(call: CallOptions): Promise<{ readonly saved: Saved; readonly version: number } | undefined> {
    try {
      const { data, stat } = await this.context.store.zooKeeper.get(PAST_USE_PATH, call);
      return { saved: savedIn(data), version: stat.version };
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) return undefined;
      throw error;
    }
  }

  /** Writes the use, unless another launcher has written it meanwhile. */
  private async write(entries: readonly SavedUse[], version: number | undefined, call: CallOptions): Promise<void> {
    const { zooKeeper } = this.context.store;
    const data = new TextEncoder().encode(JSON.stringify({ at: this.context.clock.now(), entries }));
    try {
      if (version === undefined) await zooKeeper.create(PAST_USE_PATH, data, call);
      else await zooKeeper.set(PAST_USE_PATH, data, { ...call, version });
    } catch (error) {
      if (!isZooKeeperError(error, 'bad-version') && !isZooKeeperError(error, 'node-exists')) throw error;
    }
  }
}

function greatest(entries: readonly SavedUse[]): readonly SavedUse[] {
  if (entries.length <= MAX_ENTRIES) return entries;
  // A tenant precedes its projects, because nothing can be gained by many projects.
  const weightOf = ({ project, past: [instances] }: SavedUse): number => (project === undefined ? 1e9 : 0) + instances;
  return [...entries].sort((a, b) => weightOf(b) - weightOf(a)).slice(0, MAX_ENTRIES);
}

/** Returns what can be read of the data; nothing, from long ago, if another program has damaged them. */
function savedIn(data: Uint8Array): Saved {
  const nothing = { at: -Infinity, entries: [] };
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch {
    // The next write replaces them.
    return nothing;
  }
  if (!isJsonObject(value) || typeof value['at'] !== 'number' || !Array.isArray(value['entries'])) return nothing;
  return {
    at: value['at'],
    entries: value['entries'].flatMap((entry) => (isJsonObject(entry) ? savedUse(entry) : [])),
  };
}

function savedUse({ tenant, project, past }: JsonObject): readonly SavedUse[] {
  const [instances, cores, ram] = Array.isArray(past) ? past.map((each) => Number(each)) : [];
  if (tenant !== null && typeof tenant !== 'string') return [];
  if (instances === undefined || cores === undefined || ram === undefined) return [];
  if (![instances, cores, ram].every((amount) => Number.isFinite(amount) && amount >= 0)) return [];
  return [{ tenant, ...(typeof project === 'string' ? { project } : {}), past: [instances, cores, ram] }];
}
