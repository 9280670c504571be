/**
 * Reports nodes of providers that no launcher serves, e.g. because they were removed from the configuration. Their
 * resources in the cloud cannot be deleted, so the nodes are left unchanged and the launcher warns the operator.
 */

import type { NodeEntry } from '@nodepool/store';
import { Emitter, WorkQueue, type Reconciled } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Time for a launcher or a changed provider to restart before the provider counts as abandoned, in milliseconds. */
const GRACE_MS = 60_000;

export class AbandonedProviders implements Controller {
  private readonly abandoned = new Set<string>();
  /** Providers to report; a provider without a registered pool stays pending for the grace period. */
  private readonly queue: WorkQueue<string>;
  private served = new Set<string>();
  private readonly unsubscribe: (() => void)[];
  private readonly changes: Emitter<string>;

  constructor(
    private readonly context: LauncherContext,
    /**
     * Returns true if this launcher's configuration has the provider; it will then serve the provider as soon as
     * possible.
     */
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

  /** Returns true if the provider has nodes but no launcher has served it for the grace period. */
  isAbandoned(provider: string): boolean {
    return this.abandoned.has(provider);
  }

  /** Calls the listener with a provider whenever the result of `isAbandoned` for it has changed. */
  onChange(listener: (provider: string) => void): void {
    this.changes.on(listener);
  }

  /** Checks all nodes again; to be called when results of `isConfigured` have changed. */
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
      'No launcher serves the provider of these nodes, so they are not deleted: configure it again to delete them, ' +
        'or remove its records with "nodepool erase"',
      { provider, nodes: count },
    );
    this.changes.emit(provider);
    return 'done';
  }
}
