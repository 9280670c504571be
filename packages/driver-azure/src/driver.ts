import { stateMachineDriver, type Driver } from '@nodepool/core';
import { AzureAdapter } from './adapter.js';
import { loadProvider, type AzureLabel, type AzureProvider } from './config.js';
import { schema } from './schema.js';
import { siteGuide } from './site.js';

/** Returns a driver; launchers load `driver`. `AZURE_AUTH_LOCATION` is read from `env`. */
export function azureDriver(env: Readonly<Record<string, string | undefined>> = process.env): Driver {
  return stateMachineDriver<AzureLabel, AzureProvider>({
    name: 'azure',
    schema,
    siteGuide,
    getProviderConfig: (section, context) => loadProvider(section, context, env),
    getAdapter: (config) => new AzureAdapter(config),
  });
}

export const driver: Driver = azureDriver();
