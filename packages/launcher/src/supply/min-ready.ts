/**
 * Keeps the nodes of each label ready that `ReadyTargets` asks for, `min-ready` in most cases, by submitting ephemeral
 * requests of the lowest priority. A node that a request takes is replaced at once.
 */

import { MIN_READY_REQUESTOR, WorkQueue, type Reconciled } from '@nodepool/core';
import type { Change, ComponentEntry, PoolComponentData, RequestEntry } from '@nodepool/store';
import type { NodepoolConfig } from '@nodepool/config';
import { lockRecipe, type LockRecipe } from '@nodepool/zookeeper';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import { MinReadyLabel } from './min-ready-label.js';
import { MinReadySupply, type AbandonedNodes } from './min-ready-supply.js';
import type { DemandForecasts } from './forecast/demand-forecasts.js';
import type { ReadyTargets } from './ready-targets.js';

/** Length of the prefix of this process's event ids, in hexadecimal digits; long enough to be unique. */
const MARK_LENGTH = 16;

export class MinReady implements Controller {
  private readonly labels = new Map<string, MinReadyLabel>();
  private readonly supply: MinReadySupply;
  private readonly locks: LockRecipe;
  private readonly mark: string;
  /** Labels that need a disk image, by the name of the image. */
  private labelsOfImages = new Map<string, readonly string[]>();
  private readonly unsubscribe: (() => void)[];
  private readonly ending = new Set<Promise<void>>();
  /** Labels to reconcile. */
  private readonly queue: WorkQueue<string>;
  /** Ids of requests to delete. */
  private readonly removals: WorkQueue<string>;

  constructor(
    private readonly context: LauncherContext,
    abandoned: AbandonedNodes,
    private readonly targets: Pick<ReadyTargets, 'of' | 'onChange'>,
    private readonly forecasts: Pick<DemandForecasts, 'elected' | 'stop'>,
  ) {
    const { store, random, clock, hostname, log } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (label) => `keep nodes of label ${label} ready`,
      about: (label) => ({ label }),
      reconcile: async (label) => (await this.labels.get(label)?.reconcile()) ?? 'done',
    });
    this.removals = new WorkQueue({
      ...context,
      name: (id) => `remove request ${id}`,
      about: (id) => ({ node_request_id: id }),
      reconcile: (id) => this.removeRequest(id),
    });
    this.mark = random.uuidHex().slice(0, MARK_LENGTH);
    this.locks = lockRecipe(store.zooKeeper, {
      random,
      clock,
      identifier: hostname,
      onWarning: (error) => log.warn('An election could not be left yet; retrying', { error }),
    });
    this.supply = new MinReadySupply(context, abandoned, (label) => this.requeue(label));
    abandoned.onChange((provider) => this.supply.providerChanged(provider));
    this.unsubscribe = [
      store.requests.onChange(({ after }) => {
        if (after !== undefined) this.consider(after);
      }),
      store.components.onChange((change) => this.onComponent(change)),
      store.images.onChange((image) => {
        for (const label of this.labelsOfImages.get(image) ?? []) this.labels.get(label)?.retry();
      }),
      store.onComplete((complete) => {
        if (complete) this.reevaluate();
      }),
      targets.onChange((label) => this.requeue(label)),
    ];
  }

  /** Applies a changed configuration. Labels that are in none of its pools are left to launchers that have them. */
  apply(config: NodepoolConfig): void {
    const wanted = wantedLabels(config);
    for (const [label, keeper] of this.labels) {
      if (wanted.has(label)) continue;
      this.labels.delete(label);
      this.queue.remove(label);
      this.withdraw(label, Infinity);
      this.end(keeper);
    }
    for (const label of wanted) {
      const keeper = this.labels.get(label);
      if (keeper === undefined) this.labels.set(label, this.keeper(label));
      else keeper.retry();
    }
    this.labelsOfImages = labelsOfImages(config);
    this.supply.apply(config);
  }

  /** Stops requesting nodes and leaves all elections. */
  async stop(): Promise<void> {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.supply.close();
    this.queue.close();
    this.removals.close();
    // Only the elected launcher writes the demand.
    await this.forecasts.stop();
    for (const keeper of this.labels.values()) this.end(keeper);
    this.labels.clear();
    await Promise.all(this.ending);
  }

  private keeper(label: string): MinReadyLabel {
    const situation = {
      requeue: () => this.requeue(label),
      target: () => this.targets.of(label),
      supply: () => this.supply.of(label),
      newEventId: () => this.mark + this.context.random.uuidHex().slice(MARK_LENGTH),
      withdraw: (count: number) => this.withdraw(label, count),
      elected: (term: AbortSignal) => this.forecasts.elected(label, term),
    };
    return new MinReadyLabel(this.context, label, situation, this.locks);
  }

  private end(keeper: MinReadyLabel): void {
    const ended = keeper.stop().finally(() => this.ending.delete(ended));
    this.ending.add(ended);
  }

  private requeue(label: string): void {
    if (this.labels.has(label)) this.queue.add(label);
  }

  private reevaluate(): void {
    for (const state of ['fulfilled', 'failed'] as const) {
      for (const entry of [...this.context.store.requests.inState(state)]) this.consider(entry);
    }
    for (const label of this.labels.keys()) this.requeue(label);
  }

  private consider(entry: RequestEntry): void {
    const { state, requestor, node_types: labels } = entry.request;
    if ((state !== 'fulfilled' && state !== 'failed') || requestor !== MIN_READY_REQUESTOR) return;
    // The requests of other launchers, such as those of the Python Nodepool, also show whether a label can be served.
    for (const label of labels) {
      const keeper = this.labels.get(label);
      if (state === 'fulfilled') keeper?.served();
      else keeper?.declined();
    }
    // The deletion of the request frees its node.
    if (this.isOurs(entry)) this.remove(entry.id);
  }

  private onComponent({ before, after }: Change<ComponentEntry>): void {
    const pool = poolOf(after);
    if (pool === undefined || pool.paused || poolOf(before)?.paused === false) return;
    for (const label of pool.supported_labels) this.labels.get(label)?.retry();
  }

  /** Withdraws this launcher's requests that no pool has accepted yet, the youngest first. */
  private withdraw(label: string, count: number): void {
    const waiting = [...this.context.store.requests.inState('requested')].filter(
      (entry) => this.isOurs(entry) && !entry.locked && entry.request.node_types[0] === label,
    );
    for (const entry of waiting.reverse().slice(0, count)) this.remove(entry.id);
  }

  private isOurs({ request }: RequestEntry): boolean {
    return request.requestor === MIN_READY_REQUESTOR && request.event_id?.startsWith(this.mark) === true;
  }

  private remove(requestId: string): void {
    if (!this.removals.has(requestId)) this.removals.add(requestId);
  }

  private async removeRequest(id: string): Promise<Reconciled> {
    const { requests } = this.context.store;
    // A request that a pool has accepted meanwhile is not deleted.
    if (requests.get(id)?.request.state !== 'pending') await requests.remove(id);
    return 'done';
  }
}

/** Returns the labels with a positive `min-ready`, or with `ready`, that a pool of this configuration has. */
function wantedLabels(config: NodepoolConfig): ReadonlySet<string> {
  const wanted = new Set<string>();
  for (const { pools } of config.providers.values()) {
    for (const { labels } of pools.values()) {
      for (const name of labels.keys()) {
        const { minReady = 0, ready } = config.labels.get(name) ?? {};
        if (minReady > 0 || (ready !== undefined && minReady === 0)) wanted.add(name);
      }
    }
  }
  return wanted;
}

function labelsOfImages(config: NodepoolConfig): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const { pools } of config.providers.values()) {
    for (const { labels } of pools.values()) {
      for (const { name, image } of labels.values()) {
        if (image.kind === 'diskimage') found.set(image.name, [...(found.get(image.name) ?? []), name]);
      }
    }
  }
  return found;
}

function poolOf(entry: ComponentEntry | undefined): PoolComponentData | undefined {
  return entry !== undefined && 'supported_labels' in entry.component ? entry.component : undefined;
}
