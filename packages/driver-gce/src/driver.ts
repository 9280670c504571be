/** The driver: its name, configuration and adapter. `simpleTaskManagerDriver` implements the rest. */

import { simpleTaskManagerDriver, type Driver } from '@nodepool/core';
import { GceAdapter } from './adapter.js';
import { loadProvider, type GceLabel, type GceProvider } from './config.js';
import { schema } from './schema.js';

export const driver: Driver = simpleTaskManagerDriver<GceLabel, GceProvider>({
  name: 'gce',
  schema,
  getProviderConfig: loadProvider,
  getAdapter: (config) => new GceAdapter(config),
});
