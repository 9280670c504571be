/**
 * A pool's entry in the component registry. It is created in state `initializing` before any cloud is contacted, and is
 * `paused` while requests wait in the pool for capacity or for a failing cloud, or if its provider is drained.
 */

import { isDeepStrictEqual } from 'node:util';
import { MAX_OUTAGES } from '@nodepool/store';
import type { ComponentHandle, MachineOutage, PoolComponentData, PoolTrouble } from '@nodepool/store';
import { shortened, type PoolConfig, type ProviderConfig, type Timer } from '@nodepool/core';
import type { LauncherContext } from '../context.js';

/** Time (ms) for which requests must wait before the pool is published as `paused`: each change costs two writes. */
const PAUSE_AFTER_MS = 1000;

/** Limits of the published labels that cannot be served, and of each reason: the size of the component is limited. */
const MAX_UNREADY = 50;
const MAX_REASON = 300;

/** Returns the component of a starting pool. `id` is its name in `declined_by`. */
export function poolComponent(
  { hostname, version }: Pick<LauncherContext, 'hostname' | 'version'>,
  id: string,
  { name: provider, maxConcurrency }: ProviderConfig,
  { name, labels, priority, maxServers }: PoolConfig,
): PoolComponentData {
  return {
    hostname,
    kind: 'pool',
    state: 'initializing',
    version,
    model_api: 0,
    id,
    name,
    provider_name: provider,
    supported_labels: [...labels.keys()],
    priority,
    // Operators drain a provider with `max-concurrency: 0`; other pools serve its requests.
    paused: maxConcurrency === 0,
    ...(maxServers === Infinity ? {} : { max_servers: maxServers }),
  };
}

export class PoolRegistration {
  private readonly handle: ComponentHandle<PoolComponentData>;
  /** True if the configuration pauses the pool. */
  private readonly isDrained: boolean;
  private timer: Timer | undefined;
  /** True if requests have waited for capacity for `PAUSE_AFTER_MS`. */
  private full = false;
  /** Labels that no offer can serve at the moment. */
  private closed = new Set<string>();
  private left = false;
  private outages: readonly MachineOutage[] = [];
  private outageTimer: Timer | undefined;

  constructor(
    private readonly context: LauncherContext,
    component: PoolComponentData,
  ) {
    this.isDrained = component.paused;
    this.handle = context.store.components.register(component);
  }

  registered(signal: AbortSignal): Promise<void> {
    return this.handle.registered({ signal });
  }

  /** Publishes that the pool can serve requests. */
  async running(): Promise<void> {
    await this.handle.update({ state: 'running' });
  }

  /** Records that requests have started or stopped waiting for capacity. Publishes a wait after `PAUSE_AFTER_MS`. */
  blocked(blocked: boolean): void {
    if (!blocked) {
      this.timer?.cancel();
      this.timer = undefined;
      this.full = false;
      this.publish();
    } else if (!this.full && this.timer === undefined) {
      this.timer = this.context.clock.schedule(PAUSE_AFTER_MS, () => {
        this.timer = undefined;
        this.full = true;
        this.publish();
      });
    }
  }

  /** Publishes the labels that no offer of the pool can serve. */
  offersChanged(closed: readonly string[]): void {
    this.closed = new Set(closed);
    this.publish();
  }

  /** Publishes the machines that are out of service. Combines changes that follow each other quickly. */
  outOfService(outages: readonly MachineOutage[]): void {
    this.outages = outages.slice(0, MAX_OUTAGES);
    if (this.left || isDeepStrictEqual(this.outages, this.handle.component.out_of_service ?? [])) return;
    this.outageTimer ??= this.context.clock.schedule(PAUSE_AFTER_MS, () => {
      this.outageTimer = undefined;
      const update = { out_of_service: this.outages };
      this.context.tasks.run('publish machines out of service', () => this.handle.update(update));
    });
  }

  /** Publishes the labels that the pool cannot serve, with the reasons. */
  labelsUnready(reasons: ReadonlyMap<string, string>): void {
    const first = [...reasons].slice(0, MAX_UNREADY).map(([label, reason]) => [label, shortened(reason, MAX_REASON)]);
    const update = { unready_labels: Object.fromEntries(first) as Readonly<Record<string, string>> };
    if (this.left || isDeepStrictEqual(update.unready_labels, this.handle.component.unready_labels ?? {})) return;
    this.context.tasks.run('publish labels that cannot be served', () => this.handle.update(update));
  }

  /** Publishes the trouble of the provider. Only its begin, its end and another state or cause are worth a write. */
  troubleChanged(trouble: PoolTrouble | undefined): void {
    const { trouble: before } = this.handle.component;
    if (this.left || (before?.state === trouble?.state && before?.cause === trouble?.cause)) return;
    this.context.tasks.run('publish the trouble of the provider', () =>
      this.handle.update({ trouble: trouble ?? null }),
    );
  }

  async close(): Promise<void> {
    this.left = true;
    this.timer?.cancel();
    this.outageTimer?.cancel();
    await this.handle.close();
  }

  private publish(): void {
    const { component } = this.handle;
    const labels = component.supported_labels.filter((label) => this.closed.has(label));
    const isClosed = labels.length > 0 && labels.length === component.supported_labels.length;
    const change = { paused: this.isDrained || this.full || isClosed, paused_labels: labels };
    const before = { paused: component.paused, paused_labels: component.paused_labels ?? [] };
    if (this.left || isDeepStrictEqual(before, change)) return;
    this.context.tasks.run('publish whether the pool is paused', () => this.handle.update(change));
  }
}
