/** A region: a cloud of its own, whose faults affect no other region. */

import type { Driver, RandomSource } from '@nodepool/core';
import type { VirtualClock } from '@nodepool/core/testing';
import { ExampleCloud, exampleDriver, readCloudSettings, type CloudSettings } from '@nodepool/driver-example';
import { cloudView, NO_CLOUD_FAULTS, type CloudLink, type CloudFaults } from '@nodepool/sim';
import { overlay, SimulatedProcess } from '@nodepool/simulated-process';

/** Instances that fit into a region. */
export const REGION_INSTANCES = 200;

/** A region without faults. */
export const CALM_REGION: CloudSettings = {
  ...readCloudSettings({}),
  bootTimeMs: [45_000, 75_000],
  deleteTimeMs: [2000, 10_000],
  apiLatencyMs: [50, 500],
  listLagMs: [0, 1000],
  quota: { instances: REGION_INSTANCES, cores: Infinity, ram: Infinity },
};

export class Region {
  readonly cloud: ExampleCloud;
  readonly link: CloudLink = { state: 'open' };
  readonly cloudFaults: CloudFaults;
  /** Number of instances that were created. */
  creations = 0;
  readonly driver: Driver;

  constructor(
    readonly name: string,
    { clock, random }: { readonly clock: VirtualClock; readonly random: RandomSource },
  ) {
    this.cloud = new ExampleCloud({ clock, random, settings: CALM_REGION });
    this.cloudFaults = { ...NO_CLOUD_FAULTS, random };
    const observer = {
      creating: () => {
        this.creations += 1;
      },
      created: () => undefined,
      deleting: () => undefined,
    };
    const { link, cloudFaults } = this;
    const process = new SimulatedProcess('launcher', clock);
    const view = cloudView(this.cloud, { process, link, cloudFaults, observer, atStep: () => undefined });
    this.driver = exampleDriver({ cloud: view });
  }
}

/** Returns the example driver with a cloud for each provider: the region of the same name. */
export function driverOf(regions: readonly Region[]): Driver {
  return overlay(exampleDriver(), {
    getProvider: (config) => {
      const region = regions.find(({ name }) => name === config.name);
      if (region === undefined) throw new Error(`there is no region ${config.name}`);
      return region.driver.getProvider(config);
    },
  });
}
