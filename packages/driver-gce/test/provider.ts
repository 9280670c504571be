/** A provider of this driver on a simulated cloud. */

import type { JsonObject } from '@nodepool/core';
import { TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import { driver } from '../src/index.js';
import { section, sectionFor, ZONE, type OpenCloud } from './cloud.js';

export class TestProvider extends AnyTestProvider {
  constructor({ time, cloud }: OpenCloud, providerSection: JsonObject = section()) {
    super({ time, driver, section: sectionFor(cloud, providerSection), launch: { availabilityZone: ZONE } });
  }

  static started(open: OpenCloud, providerSection?: JsonObject): Promise<TestProvider> {
    return new TestProvider(open, providerSection).start();
  }
}
