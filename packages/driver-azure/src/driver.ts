/** The driver itself: its name, its configuration, and an adapter to its cloud; `stateMachineDriver` does the rest. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { AzureAdapter } from './adapter.js';
import { loadProvider, type AzureLabel, type AzureProvider } from './config.js';
import { schema } from './schema.js';

/** Makes a driver; what a launcher loads is `driver`. `env`: where `AZURE_AUTH_LOCATION` is looked for. */
export function azureDriver(env: Readonly<Record<string, string | undefined>> = process.env): Driver {
  return stateMachineDriver<AzureLabel, AzureProvider>({
    name: 'azure',
    schema,
    getProviderConfig: (section, context) => loadProvider(section, context, env),
    getAdapter: (config) => new AzureAdapter(config),
  });
}

export const driver: Driver = azureDriver();
