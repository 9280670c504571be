/** A pool's entry in the component registry, and what it tells others there: that it has been without room for a while. */

import type { ComponentHandle, PoolComponentData, PoolConfig, Timer } from '@nodepool/core';
import type { LauncherContext } from './context.js';

/** Shorter shortages are nobody else's business: telling costs two writes. */
const PAUSE_AFTER_MS = 1000;

/** What a pool says of itself as it starts. `id` goes into `declined_by`. */
export function poolComponent(
  { hostname, version }: Pick<LauncherContext, 'hostname' | 'version'>,
  id: string,
  provider: string,
  { name, labels, priority }: PoolConfig,
): PoolComponentData {
  return {
    hostname,
    kind: 'pool',
    state: 'running',
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

  constructor(
    private readonly context: LauncherContext,
    component: PoolComponentData,
  ) {
    this.handle = context.store.components.register(component);
  }

  registered(signal: AbortSignal): Promise<void> {
    return this.handle.registered({ signal });
  }

  /** To be told whether requests wait for room; others hear of it when it lasts, and at once when it is over. */
  blocked(blocked: boolean): void {
    const { paused } = this.handle.component;
    if (!blocked) {
      this.timer?.cancel();
      this.timer = undefined;
      if (paused) this.setPaused(false);
    } else if (!paused && this.timer === undefined) {
      this.timer = this.context.clock.schedule(PAUSE_AFTER_MS, () => {
        this.timer = undefined;
        this.setPaused(true);
      });
    }
  }

  async close(): Promise<void> {
    this.timer?.cancel();
    await this.handle.close();
  }

  private setPaused(paused: boolean): void {
    this.context.tasks.run('tell whether the pool is paused', () => this.handle.update({ paused }));
  }
}
