/** The driver itself: its name, its configuration, and an adapter to its cloud; the state-machine framework does the rest. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { MyCloudAdapter } from './adapter.js';
import { loadProvider, schema, type MyCloudLabel, type MyCloudProvider } from './config.js';
import { TinyCloud } from './tiny-cloud.js';

export interface MyCloudDriverOptions {
  /** The cloud of every provider, whatever the configuration says: for tests. */
  readonly cloud?: TinyCloud;
}

/** Makes a driver; what a launcher loads is `driver`, made without options. */
export function myCloudDriver({ cloud }: MyCloudDriverOptions = {}): Driver {
  return stateMachineDriver<MyCloudLabel, MyCloudProvider>({
    name: 'mycloud',
    schema,
    getProviderConfig: loadProvider,
    getAdapter: (config) => new MyCloudAdapter(config, cloud ?? TinyCloud.ofProject(config.project)),
  });
}

export const driver: Driver = myCloudDriver();
