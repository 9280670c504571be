/** The contract for all drivers; see the documentation of `@nodepool/driver-kit`. */

import { describe, it } from 'node:test';
import type { Adapter, ProviderConfig } from '@nodepool/core';
import { describeDriverContract, type DriverFixture, type TestCloud } from '@nodepool/driver-kit';
import { MyCloudAdapter } from '../src/adapter.js';
import { openTestCloud, fixture } from './test-cloud.js';

/** Adds the adapter, so that the contract tests check the machines step by step. */
function open(): TestCloud {
  const testCloud = openTestCloud();
  const makeAdapter = (config: ProviderConfig): Adapter => new MyCloudAdapter(config, testCloud.cloud);
  return { ...testCloud, makeAdapter };
}

const withMachines: DriverFixture = { ...fixture, can: [...fixture.can, 'adapter'], open };

describeDriverContract(withMachines, { describe, it });
