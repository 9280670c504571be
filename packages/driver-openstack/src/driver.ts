import { stateMachineDriver, type Driver } from '@nodepool/core';
import { homedir } from 'node:os';
import { OpenStackAdapter } from './adapter.js';
import type { Environment } from './client/cloud-files.js';
import { imageFormatOf } from './client/cloud.js';
import { loadProvider, type OpenStackLabel, type OpenStackProvider } from './config.js';
import { schema } from './schema.js';
import { siteGuide } from './site.js';

/**
 * Returns a driver; launchers load `driver`, which has default options. `environment` contains the directories and
 * variables in which `clouds.yaml` is searched.
 */
export function openStackDriver(environment: Environment = ownEnvironment()): Driver {
  return stateMachineDriver<OpenStackLabel, OpenStackProvider>({
    name: 'openstack',
    schema,
    siteGuide,
    getProviderConfig: (section, context) =>
      loadProvider(section, context, (cloud, region, onUnknown) =>
        imageFormatOf(cloud, region, environment, onUnknown),
      ),
    getAdapter: (config) => new OpenStackAdapter(config, environment),
  });
}

function ownEnvironment(): Environment {
  return {
    env: process.env,
    cwd: process.cwd(),
    home: homedir(),
    siteDirectories: ['/etc/xdg/openstack', '/etc/openstack'],
  };
}

export const driver: Driver = openStackDriver();
