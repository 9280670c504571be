/** The driver itself: its name, its configuration, and an adapter to its cloud; `stateMachineDriver` does the rest. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { homedir } from 'node:os';
import { OpenStackAdapter } from './adapter.js';
import type { Surroundings } from './client/cloud-files.js';
import { imageFormatOf } from './client/cloud.js';
import { loadProvider, type OpenStackLabel, type OpenStackProvider } from './config.js';
import { schema } from './schema.js';

/** Makes a driver; what a launcher loads is `driver`, made without options. `surroundings`: where `clouds.yaml` is looked for. */
export function openStackDriver(surroundings: Surroundings = ownSurroundings()): Driver {
  return stateMachineDriver<OpenStackLabel, OpenStackProvider>({
    name: 'openstack',
    schema,
    getProviderConfig: (section, context) =>
      loadProvider(section, context, (cloud, region, onUnknown) =>
        imageFormatOf(cloud, region, surroundings, onUnknown),
      ),
    getAdapter: (config) => new OpenStackAdapter(config, surroundings),
  });
}

/** Those of this process. */
function ownSurroundings(): Surroundings {
  return {
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    siteDirectories: ['/etc/xdg/openstack', '/etc/openstack'],
  };
}

export const driver: Driver = openStackDriver();
