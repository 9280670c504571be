/**
 * Reports nodes of providers that no launcher serves, e.g. because they were removed from the configuration. Their
 * resources in the cloud cannot be deleted, so the nodes are left unchanged and the launcher warns the operator. The
 * same applies to ready nodes that no pool can hand out, e.g. because their pool was renamed.
 */

import { isDeepStrictEqual } from 'node:util';
import type { Change, ComponentEntry, NodeEntry, PoolComponentData } from '@nodepool/store';
import { Emitter, WorkQueue, type Node, type Reconciled } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { Controller } from '../controller.js';

/** Time for a launcher or a changed provider to restart before the provider counts as abandoned, in milliseconds. */
const GRACE_MS = 60_000;

/** A label of a pool, or a provider if `pool` and `label` are undefined. */
interface Place {
  readonly provider: string;
  readonly pool?: string;
  readonly label?: string;
}

export class AbandonedProviders implements Controller {
  /** Keys of places; see `keyOf`. */
  private readonly abandoned = new Set<string>();
  /** The registered pools, by provider. */
  private served: ReadonlyMap<string, readonly PoolComponentData[]> = new Map();
  /** Places to report, by key; a place without a registered pool stays pending for the grace period. */
  private readonly queue: WorkQueue<string>;
  private readonly unsubscribe: (() => void)[];
  private readonly changes: Emitter<string>;

  constructor(
    private readonly context: LauncherContext,
    /** Returns true if this launcher's configuration has the provider, which it then serves as soon as possible. */
    private readonly isConfigured: (provider: string) => boolean,
  ) {
    const { store, log } = context;
    this.changes = new Emitter((error) => log.error('A listener to abandoned providers failed', error));
    this.queue = new WorkQueue({
      ...context,
      name: (key) => `report abandoned nodes of ${describe(placeOf(key))}`,
      about: (key) => ({ ...placeOf(key) }),
      reconcile: (key) => Promise.resolve(this.report(key)),
    });
    this.unsubscribe = [
      store.nodes.onChange(({ before, after }) => {
        if (after === undefined || before?.node === after.node) return;
        // Every node needs its provider, and a ready one needs a pool with its labels, too.
        if (before?.node.provider !== after.node.provider || after.node.state === 'ready') this.consider(after);
      }),
      store.components.onChange((change) => this.componentChanged(change)),
      store.onComplete((complete) => {
        if (complete) this.apply();
      }),
    ];
    this.apply();
  }

  /** Returns true if no launcher has served the node's pool with this label for the grace period. */
  isUnusable({ provider, pool }: Pick<Node, 'provider' | 'pool'>, label: string): boolean {
    const { abandoned } = this;
    if (abandoned.size === 0 || provider === null) return false;
    return abandoned.has(keyOf({ provider })) || (pool !== null && abandoned.has(keyOf({ provider, pool, label })));
  }

  /** Calls the listener with a provider whenever results of `isUnusable` for its nodes have changed. */
  onChange(listener: (provider: string) => void): void {
    this.changes.on(listener);
  }

  /** Checks all nodes again; to be called when results of `isConfigured` have changed. */
  apply(): void {
    if (!this.context.store.complete) return;
    this.updateServed();
    for (const place of [...this.abandoned].map(placeOf)) if (this.serves(place)) this.isServed(place);
    for (const entry of this.context.store.nodes.all()) this.consider(entry);
  }

  stop(): void {
    for (const unsubscribe of this.unsubscribe) unsubscribe();
    this.queue.close();
  }

  private componentChanged({ before, after }: Change<ComponentEntry>): void {
    const [left, joined] = [poolIn(before), poolIn(after)];
    // Pools change their state often, and their labels rarely.
    const isSame = isDeepStrictEqual(left?.supported_labels, joined?.supported_labels);
    if (isSame || !this.context.store.complete) return;
    const known = this.served;
    this.updateServed();
    if (joined !== undefined) {
      for (const label of joined.supported_labels) this.isServed({ ...placeIn(joined), label });
      // Nodes of its other pools wait for these from now on.
      if (!known.has(joined.provider_name)) this.considerAll(joined.provider_name);
    }
    if (left !== undefined) this.considerAll(left.provider_name);
  }

  private updateServed(): void {
    const served = new Map<string, PoolComponentData[]>();
    for (const pool of this.context.store.components.pools()) {
      const { provider_name: provider } = pool;
      const others = served.get(provider);
      if (others === undefined) served.set(provider, [pool]);
      else others.push(pool);
    }
    this.served = served;
    for (const provider of served.keys()) this.isServed({ provider });
  }

  private considerAll(provider: string): void {
    for (const entry of this.context.store.nodes.ofProvider(provider)) this.consider(entry);
  }

  private consider({ node }: NodeEntry): void {
    const { provider, pool, state, type: labels } = node;
    if (provider === null || !this.context.store.complete) return;
    this.await({ provider });
    if (pool === null || state !== 'ready' || !this.served.has(provider)) return;
    for (const label of labels) this.await({ provider, pool, label });
  }

  /** Reports the place after the grace period unless it is served by then, or was reported. */
  private await(place: Place): void {
    if (this.serves(place)) return;
    const key = keyOf(place);
    if (!this.abandoned.has(key)) this.queue.add(key, GRACE_MS);
  }

  private serves({ provider, pool, label }: Place): boolean {
    const pools = this.served.get(provider);
    if (pools === undefined || pool === undefined || label === undefined) return pools !== undefined;
    return pools.some((each) => each.name === pool && each.supported_labels.includes(label));
  }

  private isServed(place: Place): void {
    if (this.queue.size === 0 && this.abandoned.size === 0) return;
    const key = keyOf(place);
    this.queue.remove(key);
    if (this.abandoned.delete(key)) this.changes.emit(place.provider);
  }

  private report(key: string): Reconciled {
    const { store, log } = this.context;
    const place = placeOf(key);
    if (!store.complete || this.serves(place)) return 'done';
    const count = [...store.nodes.ofProvider(place.provider)].filter((entry) => isIn(entry, place)).length;
    if (count === 0) return 'done';
    if (place.pool !== undefined) {
      if (!this.served.has(place.provider)) return 'done';
      this.abandoned.add(key);
      log.warn(
        'No pool hands out these ready nodes, because no launcher serves their pool with their label: start its ' +
          'launcher, configure the pool again, or delete them with "nodepool delete"',
        { ...place, nodes: count },
      );
    } else if (this.isConfigured(place.provider)) return 'done';
    else {
      this.abandoned.add(key);
      log.warn(
        'No launcher serves the provider of these nodes, so they are not deleted: start its launcher, or configure it ' +
          'again; only if its cloud no longer exists, remove its records with "nodepool erase"',
        { ...place, nodes: count },
      );
    }
    this.changes.emit(place.provider);
    return 'done';
  }
}

function poolIn(entry: ComponentEntry | undefined): PoolComponentData | undefined {
  return entry !== undefined && 'supported_labels' in entry.component ? entry.component : undefined;
}

function placeIn({ provider_name: provider, name: pool }: PoolComponentData): Place {
  return { provider, pool };
}

function keyOf({ provider, pool, label }: Place): string {
  return JSON.stringify(pool === undefined ? [provider] : [provider, pool, label]);
}

function placeOf(key: string): Place {
  const [provider = '', pool, label] = JSON.parse(key) as string[];
  return pool === undefined || label === undefined ? { provider } : { provider, pool, label };
}

function isIn({ node: { pool, state, type } }: NodeEntry, place: Place): boolean {
  if (place.pool === undefined || place.label === undefined) return true;
  return state === 'ready' && pool === place.pool && type.includes(place.label);
}

function describe({ provider, pool, label }: Place): string {
  return pool === undefined ? `provider ${provider}` : `label ${label ?? ''} in pool ${pool} of provider ${provider}`;
}
