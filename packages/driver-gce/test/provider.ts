/** A provider of this driver on a simulated cloud. */

import type { Driver, JsonObject } from '@nodepool/core';
import { TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import { gceDriver } from '../src/driver.js';
import { DISK_GRAIN_BYTES, section, sectionFor, ZONE, type OpenCloud } from './cloud.js';

export class TestProvider extends AnyTestProvider {
  constructor(
    { time, cloud }: OpenCloud,
    providerSection: JsonObject = section(),
    driver: Driver = gceDriver(DISK_GRAIN_BYTES),
  ) {
    super({ time, driver, section: sectionFor(cloud, providerSection), launch: { availabilityZone: ZONE } });
  }

  static started(open: OpenCloud, providerSection?: JsonObject): Promise<TestProvider> {
    return new TestProvider(open, providerSection).start();
  }
}
