/** The driver itself: its name, its configuration, and an adapter to its cloud; `stateMachineDriver` does the rest. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { ExampleAdapter } from './adapter.js';
import type { ExampleCloud } from './cloud/cloud.js';
import { loadProvider, schema, type ExampleLabel, type ExampleProvider } from './config.js';

export interface ExampleDriverOptions {
  /** The cloud of every provider, whatever the configuration says: for tests and simulations. */
  readonly cloud?: ExampleCloud;
}

/** Makes a driver; what a launcher loads is `driver`, made without options. */
export function exampleDriver({ cloud }: ExampleDriverOptions = {}): Driver {
  return stateMachineDriver<ExampleLabel, ExampleProvider>({
    name: 'example',
    schema,
    getProviderConfig: loadProvider,
    getAdapter: (config) => new ExampleAdapter(config, cloud),
  });
}

export const driver: Driver = exampleDriver();
