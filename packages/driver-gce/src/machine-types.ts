/** Caches the sizes of machine types. Known sizes never expire, because they never change. */

import { isDriverError, type Call, type Clock, type JsonObject } from '@nodepool/core';
import { linkAt } from './client/answers.js';
import type { Compute } from './client/compute.js';
import { isZoneOf } from './config.js';
import { sizeIn, type MachineSize } from './quota.js';

/** Interval between queries for a machine type of listed instances that the cloud does not know (ms). */
const MISSING_INTERVAL_MS = 600_000;
/** Interval between queries for a machine type of listed instances after the cloud refused one (ms). */
const REFUSED_INTERVAL_MS = 60_000;

export class MachineTypes {
  private readonly sizes = new Map<string, MachineSize>();
  /** Monotonic time (ms) of the next query for a type of listed instances whose size is unknown. */
  private readonly nextQueries = new Map<string, number>();
  /** By zone and type. */
  private readonly underway = new Map<string, Promise<MachineSize | undefined>>();

  constructor(
    private readonly compute: Compute,
    private readonly clock: Clock,
  ) {}

  /** Returns the cached size, which is the same in every zone; undefined if the type is unknown or not cached yet. */
  known(machineType: string): MachineSize | undefined {
    return this.sizes.get(machineType);
  }

  /** Resolves with undefined if none of the zones has the type; this is not cached, since the type may be added. */
  async read(zones: readonly string[], machineType: string, call: Call): Promise<MachineSize | undefined> {
    for (const zone of zones) {
      const size = this.sizes.get(machineType) ?? (await this.readIn(zone, machineType, call));
      if (size !== undefined) return size;
    }
    return undefined;
  }

  /**
   * Reads the sizes of listed instances' types that are not cached. A type that cannot be read remains unknown for a
   * while, so that it does not make the listing fail.
   */
  async learn(instances: readonly JsonObject[], region: string, call: Call): Promise<void> {
    const unknown = new Map<string, string>();
    const now = this.clock.monotonic();
    for (const data of instances) {
      const zone = linkAt(data, 'zone') ?? '';
      const type = linkAt(data, 'machineType');
      if (type === undefined || !isZoneOf(region, zone) || this.sizes.has(type)) continue;
      if (now >= (this.nextQueries.get(type) ?? -Infinity)) unknown.set(type, zone);
    }
    await Promise.all(
      [...unknown].map(async ([type, zone]) => {
        const waitMs = await this.query(zone, type, call);
        if (waitMs === undefined) this.nextQueries.delete(type);
        else this.nextQueries.set(type, now + waitMs);
      }),
    );
  }

  /** Resolves with the time until the next query if the size is still unknown (ms). */
  private async query(zone: string, type: string, call: Call): Promise<number | undefined> {
    try {
      return (await this.read([zone], type, call)) === undefined ? MISSING_INTERVAL_MS : undefined;
    } catch (error) {
      if (call.signal.aborted) throw error;
      call.log.warn('Could not read the machine type of listed instances; their size is unknown', {
        machine_type: type,
        zone,
        error,
      });
      return REFUSED_INTERVAL_MS;
    }
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
