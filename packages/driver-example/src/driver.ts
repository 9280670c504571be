/** The driver: its name, its configuration, and an adapter to its cloud. `stateMachineDriver` implements the rest. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { ExampleAdapter } from './adapter.js';
import type { ExampleCloud } from './cloud/cloud.js';
import { loadProvider, type ExampleLabel, type ExampleProvider } from './config.js';
import { schema } from './schema.js';
import { siteGuide } from './site.js';

export interface ExampleDriverOptions {
  /** Cloud for every provider, overriding the configuration; for tests and simulations. */
  readonly cloud?: ExampleCloud;
}

/** Creates a driver. A launcher loads `driver`, which is created without options. */
export function exampleDriver({ cloud }: ExampleDriverOptions = {}): Driver {
  return stateMachineDriver<ExampleLabel, ExampleProvider>({
    name: 'example',
    schema,
    siteGuide,
    getProviderConfig: loadProvider,
    getAdapter: (config) => new ExampleAdapter(config, cloud),
  });
}

export const driver: Driver = exampleDriver();
