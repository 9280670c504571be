/** The component registry: `/nodepool/components`. */

import type { Emitter } from '@nodepool/core';
import { decodeComponent } from './component-codec.js';
import { COMPONENT_KINDS, type ComponentData, type ComponentKind, type PoolComponentData } from './component.js';
import type { Change } from '../tables/change.js';
import { ComponentHandle } from './component-handle.js';
import type { StoreContext } from '../context.js';
import { storeEmitter } from '../tables/listeners.js';
import { COMPONENTS_ROOT, kindOfComponent } from '../paths.js';

/** The handle of any kind of component. */
type OwnHandle = Pick<ComponentHandle<ComponentData>, 'path' | 'vanished'>;

export interface ComponentEntry {
  /** Path of the znode. */
  readonly path: string;
  readonly component: ComponentData | PoolComponentData;
  /** The session of its process. */
  readonly session: bigint;
}

/** A pool that has left the registry, and has not returned. */
export interface DepartedPool {
  readonly pool: PoolComponentData;
  /** Milliseconds since the epoch. */
  readonly left: number;
  /** `Clock.monotonic` (ms) at which it left, or at which its launcher was registered again without it. */
  readonly since: number;
}

/**
 * Time (ms) for which a pool that has left the registry may return while its launcher is registered, which gets a new
 * session, or configures the pool again. Its absence fails no request until then.
 */
export const POOL_RETURN_MS = 30_000;

/** Time (ms) for which a pool may return whose launcher has left as well: it is upgraded, or its machine restarts. */
export const LAUNCHER_RETURN_MS = 300_000;

/** Limit of the pools that are remembered after they have left. */
const MAX_DEPARTED = 10_000;

/** The components that are registered in the ensemble. */
export class ComponentStore {
  private readonly entries = new Map<string, ComponentEntry>();
  /** By `poolKey`, in the order of their departure. */
  private readonly departed = new Map<string, DepartedPool>();
  /** The host names of the registered launchers, by path. */
  private readonly launchers = new Map<string, string>();
  private readonly changes: Emitter<Change<ComponentEntry>>;
  private readonly own = new Set<OwnHandle>();
  /** Paths of persistent znodes. */
  private readonly persistent = new Set<string>();

  constructor(private readonly context: StoreContext) {
    this.changes = storeEmitter(context.log);
    context.caches.add({
      root: COMPONENTS_ROOT,
      wantsData: (path) => kindOfComponent(path, COMPONENT_KINDS) !== undefined,
      onPut: ({ path, data, stat }) => {
        const kind = kindOfComponent(path, COMPONENT_KINDS);
        if (kind === undefined) return;
        // A component is ephemeral; without a session, nothing would remove it when its process ends.
        if (stat.ephemeralOwner === 0n) {
          this.persistent.add(path);
          this.replace(path, undefined);
        } else {
          this.persistent.delete(path);
          this.put(path, kind, data, stat.ephemeralOwner);
        }
      },
      onRemove: ({ path }) => {
        this.persistent.delete(path);
        this.replace(path, undefined);
        for (const handle of this.own) handle.vanished(path);
      },
    });
  }

  /** True while the registry is fully known. Decisions about the presence of components require it. */
  get complete(): boolean {
    return this.context.caches.isComplete(COMPONENTS_ROOT);
  }

  *all(kind?: ComponentKind): Iterable<ComponentEntry> {
    for (const entry of this.entries.values()) {
      if (kind === undefined || entry.component.kind === kind) yield entry;
    }
  }

  *pools(): Iterable<PoolComponentData> {
    for (const { component } of this.entries.values()) {
      if (isPool(component)) yield component;
    }
  }

  /** Returns true if a launcher of the host is registered. `host`: with or without its domain, as in ids of pools. */
  hasLauncher(host: string): boolean {
    for (const hostname of this.launchers.values()) {
      if (host === hostname || host.startsWith(`${hostname}.`)) return true;
    }
    return false;
  }

  /** Returns the pools that this process has seen leave the registry, and that have not returned. */
  departedPools(): Iterable<DepartedPool> {
    return this.departed.values();
  }

  /** Returns the departed pools that may return, with the time (ms) that they have left for it. */
  returningPools(): readonly (DepartedPool & { readonly remainingMs: number })[] {
    const now = this.context.clock.monotonic();
    return [...this.departed.values()].flatMap((departed) => {
      const returnMs = this.hasLauncher(departed.pool.hostname) ? POOL_RETURN_MS : LAUNCHER_RETURN_MS;
      const remainingMs = departed.since + returnMs - now;
      return remainingMs > 0 ? [{ ...departed, remainingMs }] : [];
    });
  }

  /** Returns the matching pool that left last, preferably one whose launcher has left as well. */
  lastDeparted(matches: (pool: PoolComponentData) => boolean): DepartedPool | undefined {
    const found = [...this.departed.values()].filter(({ pool }) => matches(pool));
    return found.findLast(({ pool }) => !this.hasLauncher(pool.hostname)) ?? found.at(-1);
  }

  /** Returns the paths of persistent znodes in the registry. No process owns them, so they are no components. */
  withoutSession(): Iterable<string> {
    return this.persistent;
  }

  onChange(listener: (change: Change<ComponentEntry>) => void): () => void {
    return this.changes.on(listener);
  }

  /** Registers a component of this process, and again in each new session, until `close`. */
  register<C extends ComponentData>(component: C): ComponentHandle<C> {
    const handle: ComponentHandle<C> = new ComponentHandle<C>(
      this.context,
      component,
      (path) => [...this.own].some((other) => other.path === path),
      () => this.own.delete(handle),
    );
    this.own.add(handle);
    return handle;
  }

  private put(path: string, kind: ComponentKind, data: Uint8Array, session: bigint): void {
    const component = decodeComponent(data, kind);
    if (typeof component === 'string') {
      this.context.log.warn('A component cannot be read and counts as absent', { path, reason: component });
      this.replace(path, undefined);
    } else {
      this.replace(path, { path, component, session });
    }
  }

  private replace(path: string, after: ComponentEntry | undefined): void {
    const before = this.entries.get(path);
    if (before === undefined && after === undefined) return;
    if (after === undefined) this.entries.delete(path);
    else this.entries.set(path, after);
    if (after?.component.kind === 'launcher') this.launcherRegistered(path, after.component.hostname);
    else this.launchers.delete(path);
    const [pool, earlier] = [after?.component, before?.component];
    if (pool !== undefined && isPool(pool)) this.departed.delete(poolKey(pool));
    else if (earlier !== undefined && isPool(earlier)) this.leave(earlier);
    this.changes.emit({ id: path, before, after });
  }

  private launcherRegistered(path: string, hostname: string): void {
    if (this.launchers.has(path)) return;
    this.launchers.set(path, hostname);
    // Its pools follow.
    const since = this.context.clock.monotonic();
    for (const [key, departed] of this.departed) {
      if (departed.pool.hostname === hostname) this.departed.set(key, { ...departed, since });
    }
  }

  private leave(pool: PoolComponentData): void {
    // A launcher that restarts quickly is registered twice for a while.
    const key = poolKey(pool);
    for (const other of this.pools()) if (poolKey(other) === key) return;
    this.departed.delete(key);
    const { clock } = this.context;
    this.departed.set(key, { pool, left: clock.now(), since: clock.monotonic() });
    const [oldest] = this.departed.keys();
    if (this.departed.size > MAX_DEPARTED && oldest !== undefined) this.departed.delete(oldest);
  }
}

/** Returns a key of the pool that stays the same when its launcher restarts. */
export function poolKey({ hostname, provider_name: provider, name }: PoolComponentData): string {
  return JSON.stringify([hostname, provider, name]);
}

function isPool(component: ComponentData | PoolComponentData): component is PoolComponentData {
  return component.kind === 'pool';
}
