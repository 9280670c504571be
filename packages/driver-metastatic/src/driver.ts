/** The driver: its name, its configuration, and its adapter. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { MetastaticAdapter } from './adapter.js';
import { loadProvider, type MetastaticLabel, type MetastaticProvider } from './config.js';
import { schema } from './schema.js';

export const driver: Driver = stateMachineDriver<MetastaticLabel, MetastaticProvider>({
  name: 'metastatic',
  schema,
  getProviderConfig: loadProvider,
  getAdapter: (config) => new MetastaticAdapter(config),
});
