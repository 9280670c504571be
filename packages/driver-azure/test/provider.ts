/** A provider of this driver on a simulated cloud. */

import type { JsonObject } from '@nodepool/core';
import { TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import { azureDriver } from '../src/index.js';
import { section, type OpenCloud } from './cloud.js';

export class TestProvider extends AnyTestProvider {
  constructor({ time, env }: Pick<OpenCloud, 'time' | 'env'>, providerSection: JsonObject = section()) {
    super({ time, driver: azureDriver(env), section: providerSection });
  }

  static started(open: Pick<OpenCloud, 'time' | 'env'>, providerSection?: JsonObject): Promise<TestProvider> {
    return new TestProvider(open, providerSection).start();
  }
}
