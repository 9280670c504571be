/** The contract that every driver keeps; see the documentation of `@nodepool/driver-kit`. */

import { describe, it } from 'node:test';
import type { Adapter, ProviderConfig } from '@nodepool/core';
import { describeDriverContract, type DriverSubject, type TestCloud } from '@nodepool/driver-kit';
import { MyCloudAdapter } from '../src/adapter.js';
import { openTestCloud, subject } from './test-cloud.js';

/** With the adapter, the machines are checked step by step. */
function open(): TestCloud {
  const testCloud = openTestCloud();
  const makeAdapter = (config: ProviderConfig): Adapter => new MyCloudAdapter(config, testCloud.cloud);
  return { ...testCloud, makeAdapter };
}

const withMachines: DriverSubject = { ...subject, can: [...subject.can, 'adapter'], open };

describeDriverContract(withMachines, { describe, it });
