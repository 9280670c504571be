/** A simulated cloud for each test of the calling file, and the providers that a test has started on it. */

import { afterEach, beforeEach } from '@jest/globals';
import type { Resource, SimulatedAzure } from '@nodepool/simulated-azure';
import type { TestTime } from '@nodepool/driver-kit';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

export const VMS = 'Microsoft.Compute/virtualMachines';
export const NICS = 'Microsoft.Network/networkInterfaces';
export const ADDRESSES = 'Microsoft.Network/publicIPAddresses';
export const DISKS = 'Microsoft.Compute/disks';

export class TestSite {
  private open: OpenCloud | undefined;
  private readonly started: TestProvider[] = [];

  constructor() {
    beforeEach(async () => {
      this.open = await openCloud();
    });
    afterEach(async () => {
      for (const test of this.started.splice(0)) await test.stop();
      await this.cloud.close();
    });
  }

  get cloud(): SimulatedAzure {
    return this.current.cloud;
  }

  get time(): TestTime {
    return this.current.time;
  }

  /** Starts a provider with the given section, which stops after the test. */
  async provider(...change: Parameters<typeof section>): Promise<TestProvider> {
    const test = await TestProvider.started(this.current, section(...change));
    this.started.push(test);
    return test;
  }

  /** Returns the VMs and their resources. */
  everything(): readonly Resource[] {
    return ([VMS, NICS, ADDRESSES, DISKS] as const).flatMap((type) => this.cloud.list(type));
  }

  private get current(): OpenCloud {
    if (this.open === undefined) throw new Error('there is a cloud only during a test');
    return this.open;
  }
}
