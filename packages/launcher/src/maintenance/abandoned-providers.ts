/**
 * Nodes of providers that no launcher serves (any more), e.g. because they were removed from the configuration. They are
 * left alone, for what they have in the cloud cannot be deleted; but somebody should know.
 */

import type { NodeEntry } from '@nodepool/store';
import { Emitter, WorkQueue, type Reconciled } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** A launcher that starts again, or serves a changed provider anew, is back by then. */
const GRACE_MS = 60_000;

export class AbandonedProviders implements Controller {
  private readonly abandoned = new Set<string>();
  /** By provider. Those without a pool are pending, until that has been so for a while. */
  private readonly queue: WorkQueue<string>;
  private served = new Set<string>();
  private readonly unsubscribe: (() => void)[];
  private readonly changes: Emitter<string>;

  constructor(
    private readonly context: LauncherContext,
    /** Whether a provider is configured here: then it is served as soon as that is possible. */
    private readonly isConfigured: (provider: string) => boolean,
  ) {
    const { store, log } = context;
    this.changes = new Emitter((error) => log.error('A listener to abandoned providers failed', error));
    this.queue = new WorkQueue({
      ...context,
      name: (provider) => `report the abandoned provider ${provider}`,
      about: (provider) => ({ provider }),
      reconcile: (provider) => Promise.resolve(this.report(provider)),
    });
    this.unsubscribe = [
      store.nodes.onChange(({ after }) => {
        if (after !== undefined) this.consider(after);
      }),
      store.components.onChange(() => this.updateServed()),
      store.onComplete((complete) => {
        if (complete) this.apply();
      }),
    ];
    this.apply();
  }

  /** Whether there are nodes of the provider, but has been nobody to serve it for a while. */
  isAbandoned(provider: string): boolean {
    return this.abandoned.has(provider);
  }

  /** Called when `isAbandoned` says something else of a provider. */
  onChange(listener: (provider: string) => void): void {
    this.changes.on(listener);
  }

  /** To be called when `isConfigured` says something else. */
  apply(): void {
    if (!this.context.store.complete) return;
    this.updateServed();
    for (const entry of this.context.store.nodes.all()) this.consider(entry);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private updateServed(): void {
    const { store } = this.context;
    if (!store.complete) return;
    const before = this.served;
    this.served = new Set<string>();
    for (const pool of store.components.pools()) this.served.add(pool.provider_name);
    for (const provider of this.served) this.isServed(provider);
    for (const provider of before) {
      if (this.served.has(provider)) continue;
      for (const entry of store.nodes.ofProvider(provider)) this.consider(entry);
    }
  }

  private consider({ node: { provider } }: NodeEntry): void {
    if (provider === null || this.served.has(provider)) return;
    if (this.abandoned.has(provider) || !this.context.store.complete) return;
    this.queue.add(provider, GRACE_MS);
  }

  private isServed(provider: string): void {
    this.queue.remove(provider);
    if (this.abandoned.delete(provider)) this.changes.emit(provider);
  }

  private report(provider: string): Reconciled {
    const { store, log } = this.context;
    if (!store.complete || this.isConfigured(provider)) return 'done';
    const count = [...store.nodes.ofProvider(provider)].length;
    if (count === 0) return 'done';
    this.abandoned.add(provider);
    log.warn(
      'Nobody serves the provider of these nodes, so they are left alone: configure it again to have them deleted, ' +
        'or remove what is known of it with "nodepool erase"',
      { provider, nodes: count },
    );
    this.changes.emit(provider);
    return 'done';
  }
}
