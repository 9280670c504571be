/**
 * Forecasts the demand of the labels that this launcher is elected for, and publishes the numbers of ready nodes in its
 * component, from which all launchers read them.
 */

import { isDeepStrictEqual } from 'node:util';
import { backOffMs, LAUNCHING_STATES, WorkQueue, type Reconciled } from '@nodepool/core';
import { QUARTER_MS, type NodepoolConfig } from '@nodepool/config';
import { LostOwnershipError, type Change, type DemandForecast, type NodeEntry } from '@nodepool/store';
import type { LauncherContext } from '../../context.js';
import type { Controller } from '../../controller.js';
import { LabelDemand } from './label-demand.js';

/** Limits of the wait (ms) before a failed read or write is repeated. */
const BACK_OFF = { firstMs: 1000, longestMs: 60_000 } as const;

/** Limit of the last write (ms), so that a launcher stops without ZooKeeper, too. */
const LAST_SAVE_MS = 5000;

/** The work of this launcher for a label. */
interface Term {
  readonly signal: AbortSignal;
  /** Undefined until the history is read. */
  demand: LabelDemand | undefined;
  failures: number;
}

export class DemandForecasts implements Controller {
  private labels: NodepoolConfig['labels'] = new Map();
  private readonly terms = new Map<string, Term>();
  private readonly published = new Map<string, DemandForecast>();
  private readonly queue: WorkQueue<string>;
  private stopping: Promise<void> | undefined;
  private readonly unsubscribe: (() => void)[];

  constructor(
    private readonly context: LauncherContext,
    /** Publishes the forecasts of all labels. */
    private readonly publish: (forecasts: Readonly<Record<string, DemandForecast>>) => void,
  ) {
    const { store } = context;
    this.queue = new WorkQueue({
      ...context,
      name: (label) => `forecast the demand for label ${label}`,
      about: (label) => ({ label }),
      reconcile: (label) => this.reconcile(label),
    });
    this.unsubscribe = [
      store.requests.onChange(({ before, after }) => {
        if (before !== undefined || after === undefined) return;
        for (const { demand } of this.terms.values()) demand?.requested(after, context.clock.now());
      }),
      store.nodes.onChange((change) => this.nodeChanged(change)),
    ];
  }

  /** Counts the demand of the label until the term ends. */
  elected(label: string, signal: AbortSignal): void {
    this.terms.set(label, { signal, demand: undefined, failures: 0 });
    signal.addEventListener('abort', () => this.ended(label, signal), { once: true });
    this.queue.add(label);
  }

  apply({ labels }: NodepoolConfig): void {
    this.labels = labels;
    for (const label of this.terms.keys()) this.queue.add(label);
  }

  /** Resolves once the demand of the present quarter of an hour is written. Call it before the terms end. */
  stop(): Promise<void> {
    this.stopping ??= this.saveAll();
    return this.stopping;
  }

  private async saveAll(): Promise<void> {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
    await Promise.all(Array.from(this.terms, ([label, term]) => this.saveLast(label, term)));
  }

  private ended(label: string, signal: AbortSignal): void {
    if (this.terms.get(label)?.signal !== signal) return;
    this.terms.delete(label);
    this.queue.remove(label);
    this.withdraw(label);
  }

  private async reconcile(label: string): Promise<Reconciled> {
    const term = this.terms.get(label);
    const forecast = this.labels.get(label)?.ready?.forecast;
    if (forecast === undefined) this.withdraw(label);
    if (term === undefined || forecast === undefined) return 'done';
    const { store, clock, random, log } = this.context;
    try {
      // Requests are counted once the caches have all of them.
      if (term.demand === undefined && !store.complete) return { requeueAfterMs: BACK_OFF.firstMs };
      term.demand ??= await this.load(label, term.signal);
      const { from, counts, leadMs } = term.demand.forecast(clock.now(), forecast.servedAtOnce);
      this.change(label, { from: from / 1000, counts, lead: Math.round(leadMs / 1000) });
      const removed = await term.demand.save(store, { signal: term.signal });
      if (removed.length > 0)
        log.info('Deleted old records of demand', { label, days: removed, reason: 'they are older than four weeks' });
      term.failures = 0;
      return { requeueAfterMs: QUARTER_MS - (clock.now() % QUARTER_MS) };
    } catch (error) {
      if (term.signal.aborted) return 'done';
      // The record of another launcher has more than what this one remembers.
      if (error instanceof LostOwnershipError) term.demand = undefined;
      term.failures += 1;
      const waitMs = backOffMs(term.failures, undefined, random, BACK_OFF);
      log.warn('The demand for a label could not be saved; retrying', { label, error, wait_ms: waitMs });
      return { requeueAfterMs: waitMs };
    }
  }

  private async load(label: string, signal: AbortSignal): Promise<LabelDemand> {
    const { store, clock } = this.context;
    const days = await store.demand.read(label, { signal });
    return LabelDemand.of(label, days, store.requests.all(), clock.now());
  }

  private async saveLast(label: string, { demand, signal }: Term): Promise<void> {
    const { store, log } = this.context;
    try {
      if (!signal.aborted) await demand?.save(store, { signal, timeoutMs: LAST_SAVE_MS });
    } catch (error) {
      if (!signal.aborted) log.warn('The latest demand for a label could not be saved', { label, error });
    }
  }

  private withdraw(label: string): void {
    if (this.published.delete(label)) this.publish(Object.fromEntries(this.published));
  }

  private change(label: string, forecast: DemandForecast): void {
    if (isDeepStrictEqual(this.published.get(label), forecast)) return;
    this.published.set(label, forecast);
    this.publish(Object.fromEntries(this.published));
  }

  private nodeChanged({ before, after }: Change<NodeEntry>): void {
    if (before === undefined || after?.node.state !== 'ready' || !LAUNCHING_STATES.includes(before.node.state)) return;
    const { created_time: created, state_time: ready, type } = after.node;
    if (created === null) return;
    for (const label of type) this.terms.get(label)?.demand?.booted((ready - created) * 1000);
  }
}
