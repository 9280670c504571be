/**
 * The order in which several launchers act on the same work. Each launcher computes it from the registry alone, so that
 * they agree without a message. docs/how-it-works.md describes its use.
 */

import type { NodeRequest } from '@nodepool/core';
import type { ComponentEntry, PoolComponentData, Store } from '@nodepool/store';
import { hasLabels, serves } from './serves.js';

/** A launcher of this implementation, identified by the session that its components have in common. */
interface Peer {
  readonly key: string;
  readonly pools: readonly PoolComponentData[];
}

/** Launchers that offer the same pools for a request, those that can serve it at the moment first. */
interface Replicas {
  /** The names of their pools. */
  readonly places: string;
  readonly keys: readonly string[];
}

/** The launchers that may serve requests of one kind. */
interface Contenders {
  readonly groups: readonly Replicas[];
  /** The launchers whose pools are all paused for these requests. */
  readonly paused: ReadonlySet<string>;
}

/** A pool that decides about a request. */
export interface DecidingPool {
  readonly priority: number;
  readonly provider: string;
  readonly pool: string;
}

/** Limit of the kinds of requests whose contenders are cached, because requestors may name any labels. */
const MAX_CACHED = 10_000;

const NONE: ReadonlySet<string> = new Set();

export class LauncherOrder {
  private peers: readonly Peer[] | undefined;
  private readonly contenders = new Map<string, Contenders>();
  private readonly ofProviders = new Map<string, readonly string[]>();
  private ofPools = new Map<string, string>();
  private readonly unsubscribe: () => void;

  constructor(private readonly store: Pick<Store, 'components' | 'zooKeeper'>) {
    this.unsubscribe = store.components.onChange(() => {
      this.peers = undefined;
      this.contenders.clear();
      this.ofProviders.clear();
    });
  }

  stop(): void {
    this.unsubscribe();
  }

  /** The key of this launcher. */
  get own(): string {
    return keyOf(this.store.zooKeeper.session?.id ?? 0n);
  }

  /** Returns the key of the launcher that registered the pool with this id; undefined if there is none. */
  launcherOf(poolId: string | null): string | undefined {
    this.present();
    return poolId === null ? undefined : this.ofPools.get(poolId);
  }

  /** Returns true if another launcher has registered the pool with this id. */
  isOfOthers(poolId: string | null): boolean {
    const launcher = this.launcherOf(poolId);
    return launcher !== undefined && launcher !== this.own;
  }

  /**
   * Returns true if this launcher reports something that all launchers see, so that their metrics count it once: the
   * launcher of the pool that has done it, or, if that is unknown or has left, one that the id chooses.
   */
  reports(id: string, poolId: string | null): boolean {
    const { own } = this;
    const launcher = this.launcherOf(poolId);
    if (launcher !== undefined) return launcher === own;
    const keys = this.present().map(({ key }) => key);
    return keys.length === 0 || byWeight(id, keys)[0] === own;
  }

  /**
   * Returns the keys of the launchers that may serve a request like `pool`, the preferred one first. Requests are
   * distributed to launchers with different pools. One of the launchers with the same pools serves all requests for the
   * same labels, because acceptances of several launchers cost a further transaction each.
   */
  forRequest(request: NodeRequest, pool: DecidingPool): readonly string[] {
    const [only, ...others] = this.present();
    if (only !== undefined && others.length === 0) return [only.key];
    const { groups, paused } = this.contendersFor(request, pool);
    const [first] = groups;
    if (first !== undefined && groups.length === 1) return first.keys;
    const ranked = groups.map((group) => ({ group, weight: weightOf(request.id, group.places) }));
    const keys = ranked.sort((a, b) => b.weight - a.weight).flatMap(({ group }) => group.keys);
    return paused.size === 0
      ? keys
      : [...keys.filter((key) => !paused.has(key)), ...keys.filter((key) => paused.has(key))];
  }

  /** Returns the launchers that may continue a request with nodes in the pool. */
  forResumption({ id }: NodeRequest, { provider, pool }: DecidingPool): readonly string[] {
    const keys = this.having((each) => each.provider_name === provider && each.name === pool);
    return byWeight(id, keys);
  }

  /** Returns the launchers that may delete a node of the provider. The launcher of the node comes first. */
  forDeletion(id: string, provider: string, poolId: string | null): readonly string[] {
    let keys = this.ofProviders.get(provider);
    if (keys === undefined) {
      keys = this.having((each) => each.provider_name === provider);
      this.ofProviders.set(provider, keys);
    }
    if (keys.length < 2) return keys;
    const launcher = this.launcherOf(poolId);
    const ranked = byWeight(id, keys);
    return launcher === undefined || !keys.includes(launcher)
      ? ranked
      : [launcher, ...ranked.filter((key) => key !== launcher)];
  }

  private having(has: (pool: PoolComponentData) => boolean): readonly string[] {
    return this.present().flatMap(({ key, pools }) => (pools.some(has) ? [key] : []));
  }

  private contendersFor(request: NodeRequest, pool: DecidingPool): Contenders {
    const { node_types: labels, provider, declined_by: declinedBy } = request;
    if (declinedBy.length > 0) return this.findContenders(request, pool);
    const key = JSON.stringify([pool.priority, provider, labels]);
    let found = this.contenders.get(key);
    if (found === undefined) {
      found = this.findContenders(request, pool);
      if (this.contenders.size >= MAX_CACHED) this.contenders.clear();
      this.contenders.set(key, found);
    }
    return found;
  }

  private findContenders(request: NodeRequest, { priority }: DecidingPool): Contenders {
    const { node_types: labels, provider, declined_by: declinedBy } = request;
    const undecided = this.present().map(({ key, pools }) => ({
      key,
      pools: pools.filter((pool) => !declinedBy.includes(pool.id)),
    }));
    const able = narrowed(undecided, (pool) => pool.priority === priority && hasLabels(pool, labels));
    // All pools decline a request that none of them can serve.
    const candidates = able.length > 0 ? able : undecided.filter(({ pools }) => pools.length > 0);
    const preferred = provider === null ? [] : narrowed(candidates, (pool) => pool.provider_name === provider);
    const topic = topicOf(request);
    const groups = new Map<string, string[]>();
    const paused = new Set<string>();
    for (const { key, pools } of preferred.length > 0 ? preferred : candidates) {
      const places = [...new Set(pools.map((pool) => `${pool.provider_name}/${pool.name}`))].sort().join('\n');
      groups.set(places, [...(groups.get(places) ?? []), key]);
      if (!pools.some((pool) => serves(pool, request))) paused.add(key);
    }
    const isPaused = (key: string): boolean => paused.has(key);
    return {
      groups: Array.from(groups, ([places, keys]) => {
        const sorted = byWeight(topic, keys);
        return { places, keys: [...sorted.filter((key) => !isPaused(key)), ...sorted.filter(isPaused)] };
      }),
      paused: paused.size === 0 ? NONE : paused,
    };
  }

  /** Returns the launchers of this implementation. Other programs do not follow the order. */
  private present(): readonly Peer[] {
    if (this.peers !== undefined) return this.peers;
    const entries = [...this.store.components.all()];
    const following = new Set(entries.filter(followsOrder).map(({ session }) => session));
    const bySession = new Map<bigint, PoolComponentData[]>();
    this.ofPools = new Map();
    for (const { session, component } of entries) {
      if (!following.has(session) || !('supported_labels' in component)) continue;
      const pools = bySession.get(session);
      if (pools === undefined) bySession.set(session, [component]);
      else pools.push(component);
      this.ofPools.set(component.id, keyOf(session));
    }
    this.peers = Array.from(bySession, ([session, pools]) => ({ key: keyOf(session), pools }));
    return this.peers;
  }
}

/** Returns the labels of a request, which determine the preferred one of launchers with the same pools. */
export function topicOf({ node_types: labels }: Pick<NodeRequest, 'node_types'>): string {
  return labels.length === 1 ? (labels[0] ?? '') : [...new Set(labels)].sort().join('\n');
}

/** Sorts the keys by a weight that depends on `work` (rendezvous hashing). */
export function byWeight(work: string, keys: readonly string[]): readonly string[] {
  if (keys.length < 2) return keys;
  const weighed = keys.map((key) => ({ key, weight: weightOf(work, key) }));
  return weighed.sort((a, b) => b.weight - a.weight || (a.key < b.key ? -1 : 1)).map(({ key }) => key);
}

function narrowed(peers: readonly Peer[], isMeant: (pool: PoolComponentData) => boolean): readonly Peer[] {
  return peers.flatMap(({ key, pools }) => {
    const meant = pools.filter(isMeant);
    return meant.length === 0 ? [] : [{ key, pools: meant }];
  });
}

/** Returns true for the component of a launcher of this implementation: only those publish their configuration. */
function followsOrder({ component }: ComponentEntry): boolean {
  return component.kind === 'launcher' && component.configuration !== undefined;
}

function keyOf(session: bigint): string {
  return session.toString(16);
}

/** Returns a 32-bit hash of both texts (FNV-1a, with the final mix of MurmurHash3). */
function weightOf(work: string, key: string): number {
  let hash = 0x811c9dc5;
  for (const text of [work, '\n', key]) {
    for (let index = 0; index < text.length; index += 1) {
      hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    }
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
