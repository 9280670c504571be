/** A provider of this driver on a simulated cloud. */

import { afterEach } from '@jest/globals';
import type { Driver, JsonObject } from '@nodepool/core';
import { TestProvider as AnyTestProvider } from '@nodepool/driver-kit';
import type { CloudSettings } from '@nodepool/simulated-gce';
import { gceDriver } from '../src/driver.js';
import { DISK_GRAIN_BYTES, openCloud, section, sectionFor, ZONE, type OpenCloud } from './cloud.js';

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

const endings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

/** Runs `end` after the test, before the functions that were registered earlier. */
export function endAfterTest(end: () => Promise<void>): void {
  endings.push(end);
}

/** Opens a cloud and starts a provider on it. Both end after the test. */
export async function openWith(
  providerSection?: JsonObject,
  settings?: Partial<CloudSettings>,
): Promise<OpenCloud & { readonly provider: TestProvider }> {
  const open = await openCloud(settings);
  const provider = await TestProvider.started(open, providerSection);
  endAfterTest(async () => {
    await provider.stop();
    await open.cloud.close();
  });
  return { ...open, provider };
}
