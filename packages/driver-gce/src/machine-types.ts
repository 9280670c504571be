/** Caches the sizes of machine types. Known sizes never expire, because they never change. */

import { isDriverError, type Call, type Clock, type JsonObject } from '@nodepool/core';
import { linkAt } from './client/answers.js';
import type { Compute } from './client/compute.js';
import { isZoneOf } from './config.js';
import { sizeIn, type MachineSize } from './quota.js';

/** Interval between queries for a machine type of listed instances that the cloud does not know (ms). */
const MISSING_INTERVAL_MS = 600_000;

export class MachineTypes {
  private readonly sizes = new Map<string, MachineSize>();
  /** Monotonic time (ms) at which the cloud did not know a type of listed instances, e.g. a discontinued one. */
  private readonly missing = new Map<string, number>();
  /** By zone and type. */
  private readonly underway = new Map<string, Promise<MachineSize | undefined>>();

  constructor(
    private readonly compute: Compute,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the cached size, which is the same in every zone. Returns undefined if the type is unknown or not cached
   * yet.
   */
  known(machineType: string): MachineSize | undefined {
    return this.sizes.get(machineType);
  }

  /**
   * Resolves with undefined if none of the zones has the type. This result is not cached, since the type may be added.
   */
  async read(zones: readonly string[], machineType: string, call: Call): Promise<MachineSize | undefined> {
    for (const zone of zones) {
      const size = this.sizes.get(machineType) ?? (await this.readIn(zone, machineType, call));
      if (size !== undefined) return size;
    }
    return undefined;
  }

  /** Reads the sizes of listed instances' types that are not cached. */
  async learn(instances: readonly JsonObject[], region: string, call: Call): Promise<void> {
    const unknown = new Map<string, string>();
    const now = this.clock.monotonic();
    for (const data of instances) {
      const zone = linkAt(data, 'zone') ?? '';
      const type = linkAt(data, 'machineType');
      if (type === undefined || !isZoneOf(region, zone) || this.sizes.has(type)) continue;
      if (now - (this.missing.get(type) ?? -Infinity) >= MISSING_INTERVAL_MS) unknown.set(type, zone);
    }
    await Promise.all(
      [...unknown].map(async ([type, zone]) => {
        if ((await this.read([zone], type, call)) === undefined) this.missing.set(type, now);
      }),
    );
  }

  /** Shares a reading in progress. */
  private async readIn(zone: string, machineType: string, call: Call): Promise<MachineSize | undefined> {
    const key = `${zone}/${machineType}`;
    const underway = this.underway.get(key);
    if (underway !== undefined) return underway;
    const reading = this.ask(zone, machineType, call);
    this.underway.set(key, reading);
    try {
      const size = await reading;
      if (size !== undefined) this.sizes.set(machineType, size);
      return size;
    } finally {
      this.underway.delete(key);
    }
  }

  private async ask(zone: string, machineType: string, call: Call): Promise<MachineSize | undefined> {
    try {
      return sizeIn(await this.compute.machineType(zone, machineType, call));
    } catch (error) {
      if (isDriverError(error) && error.code === 'not-found') return undefined;
      throw error;
    }
  }
}
