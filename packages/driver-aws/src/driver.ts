/** The driver: its name, configuration and adapter. `stateMachineDriver` implements the rest. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { AwsAdapter } from './adapter.js';
import { loadProvider, type AwsLabel, type AwsProvider } from './config.js';
import { schema } from './schema.js';
import { siteGuide } from './site.js';

/** Returns a driver; launchers load `driver`. `AWS_SHARED_CREDENTIALS_FILE` is read from `env`. */
export function awsDriver(env: Readonly<Record<string, string | undefined>> = process.env): Driver {
  return stateMachineDriver<AwsLabel, AwsProvider>({
    name: 'aws',
    schema,
    siteGuide,
    getProviderConfig: loadProvider,
    getAdapter: (config) => new AwsAdapter(config, env),
  });
}

export const driver: Driver = awsDriver();
