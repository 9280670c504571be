/** A provider of this driver on a simulated or a real cloud. */

import { expect } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import { openStackDriver } from '../src/index.js';
import { section, type OpenCloud } from './cloud.js';

type Where = Pick<OpenCloud, 'time' | 'environment'>;

export class TestProvider extends AnyTestProvider {
  constructor({ time, environment }: Where, providerSection: JsonObject = section()) {
    super({ time, driver: openStackDriver(environment), section: providerSection });
  }

  static started(open: Where, providerSection?: JsonObject): Promise<TestProvider> {
    return new TestProvider(open, providerSection).start();
  }
}

/** Stops the provider and closes its cloud. Fails the test if background work of the provider has failed. */
export async function closeAndCheck({ cloud }: OpenCloud, test: TestProvider): Promise<void> {
  await test.stop();
  await cloud.close();
  expect(test.failures).toEqual([]);
}
