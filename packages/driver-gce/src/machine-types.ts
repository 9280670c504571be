/** Sizes of machine types, read once for all: they do not change. */

import { isDriverError, type Call, type JsonObject } from '@nodepool/core';
import { linkAt } from './client/answers.js';
import type { Compute } from './client/compute.js';
import { isZoneOf } from './config.js';
import { sizeIn, type MachineSize } from './quota.js';

export class MachineTypes {
  private readonly sizes = new Map<string, MachineSize | undefined>();
  private readonly underway = new Map<string, Promise<MachineSize | undefined>>();

  constructor(private readonly compute: Compute) {}

  /** What was read; undefined: not yet, or there is no such type. A type has the same size in every zone. */
  known(machineType: string): MachineSize | undefined {
    return this.sizes.get(machineType);
  }

  /** Undefined when the zone does not have it, of which nothing is kept: it may come. */
  async read(zone: string, machineType: string, call: Call): Promise<MachineSize | undefined> {
    const known = this.sizes.get(machineType);
    if (known !== undefined) return known;
    const underway = this.underway.get(machineType);
    if (underway !== undefined) return underway;
    const reading = this.ask(zone, machineType, call);
    this.underway.set(machineType, reading);
    try {
      const size = await reading;
      if (size !== undefined) this.sizes.set(machineType, size);
      return size;
    } finally {
      this.underway.delete(machineType);
    }
  }

  /** Reads the types of listed instances that were never met before. */
  async learn(instances: readonly JsonObject[], region: string, call: Call): Promise<void> {
    const unknown = new Map<string, string>();
    for (const data of instances) {
      const zone = linkAt(data, 'zone') ?? '';
      const type = linkAt(data, 'machineType');
      if (type !== undefined && isZoneOf(region, zone) && !this.sizes.has(type)) unknown.set(type, zone);
    }
    await Promise.all(
      [...unknown].map(async ([type, zone]) => {
        // A type that is no longer offered is not asked for with every list.
        if ((await this.read(zone, type, call)) === undefined) this.sizes.set(type, undefined);
      }),
    );
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
