/**
 * Nodes of providers that no launcher serves (any more), e.g. because they were removed from the configuration. They are
 * left alone, for what they have in the cloud cannot be deleted; but somebody should know.
 */

import type { NodeEntry } from '@nodepool/store';
import type { Timer } from '@nodepool/core';
import type { LauncherContext } from '../context.js';

/** A launcher that starts again, or serves a changed provider anew, is back by then. */
const GRACE_MS = 60_000;

export class AbandonedProviders {
  private readonly abandoned = new Set<string>();
  /** Providers without a pool, until that has been so for a while. */
  private readonly missing = new Map<string, Timer>();
  private served = new Set<string>();
  private readonly unsubscribe: (() => void)[];
  private readonly listeners = new Set<(provider: string) => void>();

  constructor(
    private readonly context: LauncherContext,
    /** Whether a provider is configured here: then it is served as soon as that is possible. */
    private readonly isConfigured: (provider: string) => boolean,
  ) {
    const { store } = context;
    this.unsubscribe = [
      store.nodes.onChange(({ after }) => {
        if (after !== undefined) this.consider(after);
      }),
      store.components.onChange(() => this.updateServed()),
      store.onComplete((complete) => {
        if (complete) this.considerAll();
      }),
    ];
    this.considerAll();
  }

  /** Whether there are nodes of the provider, but has been nobody to serve it for a while. */
  isAbandoned(provider: string): boolean {
    return this.abandoned.has(provider);
  }

  /** Called when `isAbandoned` says something else of a provider. */
  onChange(listener: (provider: string) => void): void {
    this.listeners.add(listener);
  }

  /** To be called when `isConfigured` says something else. */
  considerAll(): void {
    if (!this.context.store.complete) return;
    this.updateServed();
    for (const entry of this.context.store.nodes.all()) this.consider(entry);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    for (const timer of this.missing.values()) timer.cancel();
    this.missing.clear();
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
    if (this.missing.has(provider) || this.abandoned.has(provider) || !this.context.store.complete) return;
    const timer = this.context.clock.schedule(GRACE_MS, () => {
      this.missing.delete(provider);
      this.report(provider);
    });
    this.missing.set(provider, timer);
  }

  private isServed(provider: string): void {
    this.missing.get(provider)?.cancel();
    this.missing.delete(provider);
    if (this.abandoned.delete(provider)) this.tell(provider);
  }

  private report(provider: string): void {
    const { store, log } = this.context;
    if (!store.complete || this.isConfigured(provider)) return;
    const count = [...store.nodes.ofProvider(provider)].length;
    if (count === 0) return;
    this.abandoned.add(provider);
    log.warn(
      'Nobody serves the provider of these nodes, so they are left alone: configure it again to have them deleted, ' +
        'or remove what is known of it with "nodepool erase"',
      { provider, nodes: count },
    );
    this.tell(provider);
  }

  private tell(provider: string): void {
    for (const listener of this.listeners) listener(provider);
  }
}
