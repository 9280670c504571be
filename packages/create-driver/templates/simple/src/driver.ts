/** The driver: its name, its configuration, and an adapter to its cloud. The simple framework implements the rest. */

import { simpleTaskManagerDriver, type Driver } from '@nodepool/core';
import { MyCloudAdapter } from './adapter.js';
import { loadProvider, schema, type MyCloudLabel, type MyCloudProvider } from './config.js';
import { TinyCloud } from './tiny-cloud.js';

export interface MyCloudDriverOptions {
  /** Cloud for every provider, overriding the configuration; for tests. */
  readonly cloud?: TinyCloud;
}

/** Creates a driver. A launcher loads `driver`, which is created without options. */
export function myCloudDriver({ cloud }: MyCloudDriverOptions = {}): Driver {
  return simpleTaskManagerDriver<MyCloudLabel, MyCloudProvider>({
    name: 'mycloud',
    schema,
    getProviderConfig: loadProvider,
    getAdapter: (config) => new MyCloudAdapter(config, cloud ?? TinyCloud.ofProject(config.project)),
  });
}

export const driver: Driver = myCloudDriver();
