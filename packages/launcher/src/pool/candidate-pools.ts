/**
 * The pools that may still serve a request: those in the registry, those configured in this launcher, and those that
 * left the registry recently. A pool leaves the registry when the session of its launcher ends and returns with the
 * next session, so its absence alone must not fail a request.
 */

import { isDeepStrictEqual } from 'node:util';
import {
  poolKey,
  POOL_RETURN_MS,
  type Change,
  type ComponentEntry,
  type ComponentStore,
  type PoolComponentData,
} from '@nodepool/store';
import { Emitter, type Clock, type Logger, type Timer } from '@nodepool/core';
import { hasLabels } from '../precedence/serves.js';

/** Limit of the sets of labels whose pools are cached, because requestors may name any labels. */
const MAX_CACHED = 10_000;

interface Departed {
  readonly pool: PoolComponentData;
  readonly timer: Timer;
}

/** The candidates, as used by decisions about requests. */
export interface Candidates {
  /** False while the registry is loaded or pools of the configuration are added; no decisions are made then. */
  readonly complete: boolean;
  /** Returns the pools that are in the registry or configured in this launcher. */
  present(): readonly PoolComponentData[];
  /** Returns the pools that have all these labels; those that left the registry recently count as paused. */
  having(labels: readonly string[]): readonly PoolComponentData[];
}

export class CandidatePools implements Candidates {
  private readonly own = new Map<string, PoolComponentData>();
  /** By `poolKey`. */
  private readonly departed = new Map<string, Departed>();
  /** Cached result of `present`, until the next change. */
  private known: readonly PoolComponentData[] | undefined;
  /** Cached results of `having` by set of labels, until the next change. */
  private readonly byLabels = new Map<string, readonly PoolComponentData[]>();
  private readonly changes: Emitter<boolean>;
  private readonly unsubscribe: () => void;
  /** True while the pools of a configuration are added. */
  private isGrowing = false;

  constructor(
    private readonly registry: ComponentStore,
    private readonly clock: Clock,
    log: Logger,
  ) {
    this.changes = new Emitter((error) => log.error('A listener to changes of pools failed', error));
    this.unsubscribe = registry.onChange((change) => this.onChanged(change));
  }

  get complete(): boolean {
    return this.registry.complete && !this.isGrowing;
  }

  /**
   * Calls the listener after every change, until the returned function is called. `isDecisive` is false if decisions
   * cannot depend on the change: a pool is registered as it was configured, or has begun to run.
   */
  onChange(listener: (isDecisive: boolean) => void): () => void {
    return this.changes.on(listener);
  }

  /** Runs `add`, which adds the pools of a configuration; the candidates are not complete until it ends. */
  async grow(add: () => Promise<void>): Promise<void> {
    this.isGrowing = true;
    try {
      await add();
    } finally {
      this.isGrowing = false;
      this.changed();
    }
  }

  /** Adds a configured pool, registered or not. The returned function removes it. */
  add(pool: PoolComponentData): () => void {
    this.own.set(pool.id, pool);
    this.changed();
    return () => {
      this.own.delete(pool.id);
      this.changed();
    };
  }

  present(): readonly PoolComponentData[] {
    this.known ??= [
      ...new Map([...this.own.values(), ...this.registry.pools()].map((pool) => [pool.id, pool])).values(),
    ];
    return this.known;
  }

  having(labels: readonly string[]): readonly PoolComponentData[] {
    // Labels of requests may contain any character.
    const key = JSON.stringify(labels.length > 1 ? [...new Set(labels)].sort() : labels);
    let found = this.byLabels.get(key);
    if (found === undefined) {
      found = [...this.present(), ...this.absent()].filter((pool) => hasLabels(pool, labels));
      if (this.byLabels.size >= MAX_CACHED) this.byLabels.clear();
      this.byLabels.set(key, found);
    }
    return found;
  }

  stop(): void {
    this.unsubscribe();
    for (const { timer } of this.departed.values()) timer.cancel();
    this.departed.clear();
  }

  private absent(): PoolComponentData[] {
    if (this.departed.size === 0) return [];
    const present = new Set(this.present().map(poolKey));
    return [...this.departed].flatMap(([key, { pool }]) => (present.has(key) ? [] : [pool]));
  }

  private onChanged({ before, after }: Change<ComponentEntry>): void {
    const [old, now] = [poolIn(before), poolIn(after)];
    if (now !== undefined) this.returned(poolKey(now));
    else if (old !== undefined) this.left(old);
    const known = old ?? (now === undefined ? undefined : this.own.get(now.id));
    this.changed(now === undefined || known === undefined || !isDeepStrictEqual(factsOf(now), factsOf(known)));
  }

  private left(pool: PoolComponentData): void {
    const key = poolKey(pool);
    this.returned(key);
    const timer = this.clock.schedule(POOL_RETURN_MS, () => {
      this.departed.delete(key);
      this.changed();
    });
    this.departed.set(key, { pool: { ...pool, paused: true }, timer });
  }

  private returned(key: string): void {
    this.departed.get(key)?.timer.cancel();
    this.departed.delete(key);
  }

  private changed(isDecisive = true): void {
    this.known = undefined;
    this.byLabels.clear();
    this.changes.emit(isDecisive);
  }
}

/** Returns what decisions may depend on. */
function factsOf({ state: _state, version: _version, ...facts }: PoolComponentData): object {
  return facts;
}

function poolIn(entry: ComponentEntry | undefined): PoolComponentData | undefined {
  const component = entry?.component;
  return component !== undefined && 'supported_labels' in component ? component : undefined;
}
