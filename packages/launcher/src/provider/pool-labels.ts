/** What a pool knows of its labels: what their nodes need, their images, their zones, and what stands in their way. */

import {
  QuotaInformation,
  type Call,
  type ImageUpload,
  type LabelConfig,
  type Logger,
  type PoolConfig,
  type Provider,
} from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import { driverCall } from './driver-call.js';
import { imageWait } from '../launch/image-wait.js';
import { LabelNeeds } from '../quota/label-needs.js';
import { LabelRefusals } from '../requests/label-refusals.js';
import type { TurnGate } from '../quota/turn-gate.js';

const ZONES_TIMEOUT_MS = 60_000;

export class PoolLabels {
  private readonly needs: LabelNeeds;
  private readonly refusals: LabelRefusals;
  private zones: readonly string[] = [];
  /** What stands in the way of labels with a disk image, as it was last looked at. */
  private readonly hindrances = new Map<string, string>();

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
    this.refusals = new LabelRefusals(context.clock, signal, onReady);
  }

  /** Asks the cloud for all that decisions depend on, about labels as fast as `gate` admits. */
  async load(gate: TurnGate): Promise<void> {
    await this.needs.load(gate);
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

  /** A zone for nodes of these labels that no other node determines; undefined: the cloud chooses. */
  chooseZone(names: readonly string[]): string | undefined {
    const zones = this.zones.filter((zone) => this.isUsable(names, zone));
    return zones[Math.floor(this.context.random.next() * zones.length)];
  }

  /** False if the cloud refuses one of the labels in the zone at the moment. */
  isUsable(names: readonly string[], zone: string | undefined): boolean {
    return this.refusals.reason(names, zone) === undefined;
  }

  /** To be called when the cloud has refused the label. Returns for how long it is out of service there, milliseconds. */
  refused(name: string, zone: string | undefined, reason: string): number {
    return this.refusals.refused(name, this.known(zone), reason);
  }

  /** To be called when a launch has succeeded. */
  launched(name: string, zone: string | undefined): void {
    this.refusals.launched(name, this.known(zone));
  }

  /** To be told of a change of a disk image. True when it matters for who can be served. */
  imageChanged(image: string): boolean {
    let changed = false;
    for (const { name, image: used } of this.pool.labels.values()) {
      if (used.kind !== 'diskimage' || used.name !== image) continue;
      const now = this.upcoming([name]) ?? this.obstacle([name]) ?? '';
      changed ||= this.hindrances.get(name) !== now;
      this.hindrances.set(name, now);
    }
    return changed;
  }

  /** Returns what one of the labels waits for, an upload or an answer of the cloud; undefined if none waits. */
  upcoming(names: readonly string[]): string | undefined {
    for (const name of names) {
      const wait = this.needs.waitsFor(name);
      if (wait !== undefined) return wait;
      const label = this.label(name);
      if (label?.image.kind !== 'diskimage' || this.upload(label) !== undefined) continue;
      const query = { image: label.image.name, provider: this.provider.config.name };
      for (const { state, build } of this.context.store.images.uploads(query)) {
        if (state !== 'uploading') continue;
        return `label ${name} waits for the upload of build ${build} of disk image ${label.image.name}`;
      }
    }
    return undefined;
  }

  /** What nodes of these labels need together. */
  needOf(names: readonly string[]): QuotaInformation {
    const [first, ...others] = names.map((name) => this.need(name));
    return others.reduce((sum, need) => sum.add(need), first ?? QuotaInformation.use({}));
  }

  /** Why one of the labels cannot be served at the moment; undefined when all can. */
  obstacle(names: readonly string[]): string | undefined {
    for (const name of names) {
      const label = this.label(name);
      if (label?.image.kind === 'diskimage' && this.upload(label) === undefined) {
        const wait = imageWait(this.context.store.images, label.image.name, this.provider.config.name);
        return `disk image ${label.image.name} of label ${name} has no upload to this provider that is ready: ${wait}`;
      }
      const readiness = this.needs.readiness(name);
      if (!readiness.ready) return `label ${name} cannot be served: ${readiness.reason}`;
    }
    const zones = this.zones.length === 0 ? [undefined] : this.zones;
    const refusals = zones.map((zone) => this.refusals.reason(names, zone));
    return refusals.includes(undefined) ? undefined : refusals[0];
  }

  /** A zone that the pool does not choose from does not count: nodes get there by the choice of the cloud alone. */
  private known(zone: string | undefined): string | undefined {
    return zone !== undefined && this.zones.includes(zone) ? zone : undefined;
  }

  private async loadZones(): Promise<readonly string[]> {
    const { provider, pool, signal, log } = this;
    const { clock } = this.context;
    const getAvailabilityZones = provider.getAvailabilityZones?.bind(provider);
    if (pool.availabilityZones.length > 0 || getAvailabilityZones === undefined) return pool.availabilityZones;
    const call: Call = { signal, deadline: clock.monotonic() + ZONES_TIMEOUT_MS, log };
    try {
      return await driverCall(clock, 'asking for availability zones', call, (each) =>
        getAvailabilityZones(pool.name, each),
      );
    } catch (error) {
      log.warn('The cloud does not tell its availability zones; it chooses them itself', { error });
      return [];
    }
  }
}
