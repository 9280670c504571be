/** What a pool knows of its labels: what their nodes need, their images, their zones, and what stands in their way. */

import type { Call, ImageUpload, LabelConfig, Logger, PoolConfig, Provider, QuotaInformation } from '@nodepool/core';
import type { LauncherContext } from './context.js';
import { LabelNeeds } from './label-needs.js';

const ZONES_TIMEOUT_MS = 60_000;

export class PoolLabels {
  private readonly needs: LabelNeeds;
  private zones: readonly string[] = [];

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    private readonly pool: PoolConfig,
    private readonly signal: AbortSignal,
    private readonly log: Logger,
    /** Called when a label that could not be served can be from now on. */
    onReady: () => void,
  ) {
    this.needs = new LabelNeeds(context, provider, pool, signal, onReady);
  }

  /** Asks the cloud for all that decisions depend on. */
  async load(): Promise<void> {
    await this.needs.load();
    this.zones = await this.loadZones();
  }

  label(name: string): LabelConfig | undefined {
    return this.pool.labels.get(name);
  }

  need(label: string): QuotaInformation {
    return this.needs.need(label);
  }

  /** The upload that nodes of a label with a disk image use. */
  upload({ image }: LabelConfig): ImageUpload | undefined {
    if (image.kind !== 'diskimage') return undefined;
    return this.context.store.images.newestReadyUpload(image.name, this.provider.config.name);
  }

  /** A zone for nodes that none determines; undefined: the cloud chooses. */
  chooseZone(): string | undefined {
    return this.zones[Math.floor(this.context.random.next() * this.zones.length)];
  }

  /** The cloud refuses the label; until the configuration changes. */
  failed(label: string, reason: string): void {
    this.needs.failed(label, reason);
  }

  /** Why one of the labels cannot be served at the moment; undefined when all can. */
  obstacle(names: readonly string[]): string | undefined {
    for (const name of names) {
      const label = this.label(name);
      if (label?.image.kind === 'diskimage' && this.upload(label) === undefined) {
        return `disk image ${label.image.name} of label ${name} has no upload to this provider that is ready`;
      }
      const readiness = this.needs.readiness(name);
      if (!readiness.ready) return `label ${name} cannot be served: ${readiness.reason}`;
    }
    return undefined;
  }

  private async loadZones(): Promise<readonly string[]> {
    const { provider, pool, signal, log } = this;
    if (pool.availabilityZones.length > 0 || provider.getAvailabilityZones === undefined) return pool.availabilityZones;
    const call: Call = { signal, deadline: this.context.clock.monotonic() + ZONES_TIMEOUT_MS, log };
    try {
      return await provider.getAvailabilityZones(pool.name, call);
    } catch (error) {
      log.warn('The cloud does not tell its availability zones; it chooses them itself', { error });
      return [];
    }
  }
}
