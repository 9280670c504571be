/**
 * The number of ready nodes of each label, see `readyTarget`. All launchers compute it from the same facts: the
 * configuration, the time, the nodes in use, and the forecast of the launcher that is elected for the label.
 */

import {
  nextTargetChange,
  readyTarget,
  type NodepoolConfig,
  type ReadyForecast,
  type ReadyTarget,
} from '@nodepool/config';
import { Emitter, WorkQueue, type Reconciled } from '@nodepool/core';
import { ReportedGauge } from '@nodepool/daemon';
import { newestForecast, type Change, type ComponentEntry, type NodeEntry } from '@nodepool/store';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';
import { READY_TARGETS } from '../metrics/launcher-metrics.js';
import { HeldTarget } from './held-target.js';

const NO_LABELS: readonly string[] = [];

export class ReadyTargets implements Controller {
  private labels: NodepoolConfig['labels'] = new Map();
  /** Numbers of nodes in use by label. */
  private readonly inUse = new Map<string, number>();
  /** The last forecasts; each is used until it is too old, even if its launcher has stopped. */
  private readonly forecasts = new Map<string, ReadyForecast>();
  /** The targets of the recent past, of the labels whose target can change. */
  private readonly held = new Map<string, HeldTarget>();
  private readonly changed: Emitter<string>;
  /** Labels whose target is computed again, each when it may change. */
  private readonly queue: WorkQueue<string>;
  private readonly unsubscribe: (() => void)[];

  constructor(private readonly context: LauncherContext) {
    const { store, metrics, log } = context;
    this.changed = new Emitter((error) => log.error('A changed number of ready nodes could not be applied', error));
    this.queue = new WorkQueue({
      ...context,
      name: (label) => `compute the number of ready nodes of label ${label}`,
      about: (label) => ({ label }),
      reconcile: (label) => Promise.resolve(this.reconcile(label)),
    });
    const gauge = new ReportedGauge(metrics, READY_TARGETS);
    this.unsubscribe = [
      store.nodes.onChange(({ before, after }) => this.nodeChanged(before, after)),
      store.components.onChange((change) => this.componentChanged(change)),
      metrics.onCollect(() => {
        for (const [label, { minReady, ready }] of this.labels)
          if (minReady > 0 || ready !== undefined) gauge.set({ label }, this.of(label).count);
        gauge.end();
      }),
      () => gauge.withdraw(),
    ];
    for (const entry of store.nodes.inState('in-use')) this.nodeChanged(undefined, entry);
  }

  /** Returns the number of nodes to keep ready. */
  of(label: string): ReadyTarget {
    const config = this.labels.get(label);
    if (config === undefined) return { count: 0, reason: 'the label is not in the configuration' };
    return readyTarget(this.context.clock.now(), this.inUse.get(label) ?? 0, config, this.forecasts.get(label));
  }

  /** Returns the largest number of the last `max-idle-time`: further ready nodes are surplus. */
  heldOf(label: string): number {
    return this.held.get(label)?.at(this.context.clock.monotonic()) ?? this.of(label).count;
  }

  /** Calls the listener with a label when results of `of` or `heldOf` for it may have changed. */
  onChange(listener: (label: string) => void): () => void {
    return this.changed.on(listener);
  }

  apply({ labels }: NodepoolConfig): void {
    this.labels = labels;
    for (const name of this.held.keys()) if (labels.get(name)?.ready === undefined) this.held.delete(name);
    for (const [name, { ready, maxIdleMs = Infinity }] of labels) {
      if (ready === undefined) continue;
      const held = this.held.get(name);
      if (held?.windowMs !== maxIdleMs) this.held.set(name, new HeldTarget(maxIdleMs, this.context.clock.monotonic()));
      this.forecastChanged(name);
      this.queue.add(name);
    }
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private reconcile(label: string): Reconciled {
    const config = this.labels.get(label);
    const held = this.held.get(label);
    if (config === undefined || held === undefined) return 'done';
    const { clock } = this.context;
    held.set(this.of(label).count, clock.monotonic());
    this.changed.emit(label);
    const changeMs = nextTargetChange(clock.now(), config, this.forecasts.get(label)) - clock.now();
    const nextMs = Math.min(changeMs, held.nextFall(clock.monotonic()) - clock.monotonic());
    return nextMs === Infinity ? 'done' : { requeueAfterMs: nextMs };
  }

  private nodeChanged(before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    const [was, is] = [labelsInUse(before), labelsInUse(after)];
    if (was === is) return;
    for (const label of was) this.inUse.set(label, (this.inUse.get(label) ?? 0) - 1);
    for (const label of is) this.inUse.set(label, (this.inUse.get(label) ?? 0) + 1);
    for (const label of new Set([...was, ...is])) {
      if (this.inUse.get(label) === 0) this.inUse.delete(label);
      if (this.held.has(label)) this.queue.add(label);
    }
  }

  private componentChanged({ before, after }: Change<ComponentEntry>): void {
    const labels = [before, after].flatMap((entry) => Object.keys(entry?.component.forecasts ?? {}));
    for (const label of new Set(labels)) if (this.forecastChanged(label)) this.queue.add(label);
  }

  /** Returns false if there is no newer forecast. */
  private forecastChanged(label: string): boolean {
    const forecast = newestForecast(this.context.store.components, label);
    if (forecast === undefined || forecast.from < (this.forecasts.get(label)?.from ?? -Infinity)) return false;
    this.forecasts.set(label, forecast);
    return this.held.has(label);
  }
}

/** Returns the labels of a node that is in use. The same list for the same node, if it stays in use. */
function labelsInUse(entry: NodeEntry | undefined): readonly string[] {
  return entry?.node.state === 'in-use' ? entry.node.type : NO_LABELS;
}
