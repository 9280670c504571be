/**
 * The pools that may still serve a request: those in the registry, those configured in this launcher, and those that
 * left the registry recently. A pool leaves the registry when the session of its launcher ends and returns with the
 * next session, so its absence alone must not fail a request. A launcher that starts does not know which pools were
 * there before, so it expects some with the labels of the requests that wait.
 */

import { isDeepStrictEqual } from 'node:util';
import {
  LAUNCHER_RETURN_MS,
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
/** Time (ms) after the last moment at which a pool may return, because timers may fire early. */
const LATER_MS = 10;

/** A pool that has left the registry and may return. */
interface AbsentPool {
  readonly pool: PoolComponentData;
  /** The same pool of other launchers, which are present. */
  readonly replicas: readonly PoolComponentData[];
}

/** The candidates, as used by decisions about requests. */
export interface Candidates {
  /** False while the registry is loaded or pools of the configuration are added; no decisions are made then. */
  readonly complete: boolean;
  /** Returns the pools that are in the registry or configured in this launcher. */
  present(): readonly PoolComponentData[];
  /** Returns the pools that have all these labels; those that left the registry recently count as paused. */
  having(labels: readonly string[]): readonly PoolComponentData[];
  /** Returns true if a pool with the label may return that left before this launcher started. */
  mayReturn(label: string): boolean;
  /** True while pools may return that left before this launcher started; changes of the candidates include its end. */
  readonly mayGrow: boolean;
}

export class CandidatePools implements Candidates {
  private readonly own = new Map<string, PoolComponentData>();
  /** Runs when the next absent pool may no longer return. */
  private timer: Timer | undefined;
  /** `Clock.monotonic` (ms) at which `timer` fires. */
  private due = Infinity;
  /** The labels that requests wanted when this launcher started, until their pools have had time to return. */
  private expected = new Set<string>();
  private expectation: Timer | undefined;
  /** `Clock.monotonic` (ms) until which pools may return that left before this launcher started. */
  private growsUntil = Infinity;
  /** Cached result of `present`, until the next change. */
  private known: readonly PoolComponentData[] | undefined;
  /** Cached result of `absent`, until the next change. */
  private returning: readonly AbsentPool[] | undefined;
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
      // It does not return.
      for (const label of pool.supported_labels) this.expected.delete(label);
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
      const has = (pool: PoolComponentData): boolean => hasLabels(pool, labels);
      // Another launcher of the same pool decides as the one that has left would.
      const absent = this.absent().filter(({ pool, replicas }) => has(pool) && !replicas.some(has));
      found = [...this.present().filter(has), ...absent.map(({ pool }) => pool)];
      if (this.byLabels.size >= MAX_CACHED) this.byLabels.clear();
      this.byLabels.set(key, found);
    }
    return found;
  }

  /** Called once, before the first decision, with the labels that open requests want. */
  expect(labels: Iterable<string>): void {
    this.expected = new Set(labels);
    this.growsUntil = this.clock.monotonic() + LAUNCHER_RETURN_MS;
    if (this.expected.size > 0) this.endGrowth();
  }

  get mayGrow(): boolean {
    if (this.clock.monotonic() >= this.growsUntil) return false;
    if (this.growsUntil < Infinity) this.endGrowth();
    return true;
  }

  private endGrowth(): void {
    this.expectation ??= this.clock.schedule(this.growsUntil - this.clock.monotonic() + LATER_MS, () => {
      this.expected = new Set();
      this.changed();
    });
  }

  mayReturn(label: string): boolean {
    return this.expected.has(label);
  }

  stop(): void {
    this.unsubscribe();
    this.timer?.cancel();
    this.expectation?.cancel();
  }

  private absent(): readonly AbsentPool[] {
    this.returning ??= this.returningNow();
    return this.returning;
  }

  private returningNow(): readonly AbsentPool[] {
    const returning = this.registry.returningPools();
    if (returning.length === 0) return [];
    const present = new Set(this.present().map(poolKey));
    const byPlace = new Map<string, PoolComponentData[]>();
    for (const pool of this.present()) {
      const replicas = byPlace.get(placeOf(pool));
      if (replicas === undefined) byPlace.set(placeOf(pool), [pool]);
      else replicas.push(pool);
    }
    return returning.flatMap(({ pool }) =>
      present.has(poolKey(pool))
        ? []
        : [{ pool: { ...pool, paused: true }, replicas: byPlace.get(placeOf(pool)) ?? [] }],
    );
  }

  private onChanged({ before, after }: Change<ComponentEntry>): void {
    const [old, now] = [poolIn(before), poolIn(after)];
    // The pools of a launcher that is registered again have less time left.
    const isLauncher = before === undefined && after?.component.kind === 'launcher';
    const hasLeft = now === undefined && old !== undefined;
    if (hasLeft || (isLauncher && this.registry.returningPools().length > 0)) this.checkIn(POOL_RETURN_MS);
    const known = old ?? (now === undefined ? undefined : this.own.get(now.id));
    this.changed(now === undefined || known === undefined || !isDeepStrictEqual(factsOf(now), factsOf(known)));
  }

  private checkIn(ms: number): void {
    const due = this.clock.monotonic() + ms + LATER_MS;
    if (due >= this.due) return;
    this.timer?.cancel();
    this.due = due;
    this.timer = this.clock.schedule(ms + LATER_MS, () => {
      this.due = Infinity;
      this.changed();
      const remaining = this.registry.returningPools().map(({ remainingMs }) => remainingMs);
      if (remaining.length > 0) this.checkIn(Math.min(...remaining));
    });
  }

  private changed(isDecisive = true): void {
    this.known = undefined;
    this.returning = undefined;
    this.byLabels.clear();
    this.changes.emit(isDecisive);
  }
}

function placeOf({ provider_name: provider, name }: PoolComponentData): string {
  return JSON.stringify([provider, name]);
}

/** Returns what decisions may depend on. */
function factsOf({ state: _state, version: _version, ...facts }: PoolComponentData): object {
  return facts;
}

function poolIn(entry: ComponentEntry | undefined): PoolComponentData | undefined {
  const component = entry?.component;
  return component !== undefined && 'supported_labels' in component ? component : undefined;
}
