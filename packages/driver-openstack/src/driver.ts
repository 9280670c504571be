/** The driver: its name, configuration and adapter. `stateMachineDriver` implements the rest. */

import { stateMachineDriver, type Driver } from '@nodepool/core';
import { homedir } from 'node:os';
import { OpenStackAdapter } from './adapter.js';
import type { Surroundings } from './client/cloud-files.js';
import { imageFormatOf } from './client/cloud.js';
import { loadProvider, type OpenStackLabel, type OpenStackProvider } from './config.js';
import { schema } from './schema.js';

/**
 * Returns a driver; launchers load `driver`, which has default options. `surroundings` are the directories and
 * environment in which `clouds.yaml` is searched.
 */
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

/** Returns the surroundings of this process. */
function ownSurroundings(): Surroundings {
  return {
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    siteDirectories: ['/etc/xdg/openstack', '/etc/openstack'],
  };
}

export const driver: Driver = openStackDriver();
