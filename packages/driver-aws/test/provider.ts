/** A provider of this driver on a simulated cloud. */

import type { JsonObject } from '@nodepool/core';
import { TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import { awsDriver } from '../src/index.js';
import { section, type OpenCloud } from './cloud.js';

export class TestProvider extends AnyTestProvider {
  constructor(open: OpenCloud, providerSection: JsonObject = section(open)) {
    super({ time: open.time, driver: awsDriver(open.env), section: providerSection });
  }

  static started(open: OpenCloud, providerSection?: JsonObject): Promise<TestProvider> {
    return new TestProvider(open, providerSection).start();
  }
}
