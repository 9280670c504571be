/**
 * A pool's entry in the component registry. It is created before any cloud is contacted, as `initializing`, and is
 * `paused` while requests wait here for room or for a cloud in trouble.
 */

import { isDeepStrictEqual } from 'node:util';
import type { ComponentHandle, MachineOutage, PoolComponentData } from '@nodepool/store';
import type { PoolConfig, Timer } from '@nodepool/core';
import type { LauncherContext } from '../context.js';

/** A shorter lack of room is not published, milliseconds: each change costs two writes. */
const PAUSE_AFTER_MS = 1000;

/** Machines out of service that are published, which limits the size of the component. */
const MAX_OUTAGES = 200;

/** Returns the component of a pool that starts. `id` is its name in `declined_by`. */
export function poolComponent(
  { hostname, version }: Pick<LauncherContext, 'hostname' | 'version'>,
  id: string,
  provider: string,
  { name, labels, priority }: PoolConfig,
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
    paused: false,
  };
}

export class PoolRegistration {
  private readonly handle: ComponentHandle<PoolComponentData>;
  private timer: Timer | undefined;
  /** Requests have waited for room for `PAUSE_AFTER_MS`. */
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
    this.handle = context.store.components.register(component);
  }

  registered(signal: AbortSignal): Promise<void> {
    return this.handle.registered({ signal });
  }

  /** To be called once the pool can serve requests. */
  async running(): Promise<void> {
    await this.handle.update({ state: 'running' });
  }

  /** To be called when requests begin or cease to wait for room. Publishes it once it lasts. */
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

  /** To be called when the labels that no offer of the pool can serve have changed. */
  offersChanged(closed: readonly string[]): void {
    this.closed = new Set(closed);
    this.publish();
  }

  /** To be called when machines are out of service, or in service again. Publishes several changes together. */
  outOfService(outages: readonly MachineOutage[]): void {
    this.outages = outages.slice(0, MAX_OUTAGES);
    if (this.left || isDeepStrictEqual(this.outages, this.handle.component.out_of_service ?? [])) return;
    this.outageTimer ??= this.context.clock.schedule(PAUSE_AFTER_MS, () => {
      this.outageTimer = undefined;
      const update = { out_of_service: this.outages };
      this.context.tasks.run('publish machines out of service', () => this.handle.update(update));
    });
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
    const change = { paused: this.full || isClosed, paused_labels: labels };
    const before = { paused: component.paused, paused_labels: component.paused_labels ?? [] };
    if (this.left || isDeepStrictEqual(before, change)) return;
    this.context.tasks.run('tell whether the pool is paused', () => this.handle.update(change));
  }
}
