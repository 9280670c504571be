import { simpleTaskManagerDriver, type Driver } from '@nodepool/core';
import { GceAdapter } from './adapter.js';
import { loadProvider, type GceLabel, type GceProvider } from './config.js';
import { schema } from './schema.js';
import { siteGuide } from './site.js';

/** Returns a driver; builders load `driver`. Tests use a smaller grain of disks, which takes less time. */
export function gceDriver(diskGrainBytes?: number): Driver {
  return simpleTaskManagerDriver<GceLabel, GceProvider>({
    name: 'gce',
    schema,
    siteGuide,
    getProviderConfig: loadProvider,
    getAdapter: (config) => new GceAdapter(config, diskGrainBytes),
  });
}

export const driver: Driver = gceDriver();
