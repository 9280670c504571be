/** A simulated OpenStack and providers of this driver on it, for the tests of this package. */

import { seededRandom } from '@nodepool/core/testing';
import type { JsonObject } from '@nodepool/core';
import { startSimulatedOpenStack, type CloudSettings, type SimulatedOpenStack } from '@nodepool/simulated-openstack';
import { callOn, simulatedTime, type TestTime } from '@nodepool/driver-kit';
import { Client } from '../src/client/client.js';
import type { Environment } from '../src/client/cloud-files.js';

export const PROVIDER = 'test';

/** Returns a provider section with a pool `main`, a label `small` and the given keys. */
export function section(change: JsonObject = {}, label: JsonObject = {}, pool: JsonObject = {}): JsonObject {
  return {
    name: PROVIDER,
    driver: 'openstack',
    cloud: 'real',
    rate: 0,
    'cloud-images': [{ name: 'test-image' }],
    pools: [
      {
        name: 'main',
        networks: ['private'],
        'auto-floating-ip': false,
        labels: [{ name: 'small', 'cloud-image': 'test-image', 'flavor-name': 'm1.tiny', ...label }],
        ...pool,
      },
    ],
    ...change,
  };
}

/** Returns an environment that contains only the `clouds.yaml` of a simulated cloud. */
export function environmentOf({ cloudsYaml }: Pick<SimulatedOpenStack, 'cloudsYaml'>): Environment {
  return { env: { OS_CLIENT_CONFIG_FILE: cloudsYaml }, cwd: '/nowhere', home: '/nowhere', siteDirectories: [] };
}

export interface OpenCloud {
  readonly time: TestTime;
  readonly cloud: SimulatedOpenStack;
  readonly environment: Environment;
}

/** Opens a simulated cloud on simulated time. */
export async function openCloud(settings: Partial<CloudSettings> = {}): Promise<OpenCloud> {
  const time = simulatedTime();
  const cloud = await startSimulatedOpenStack({ clock: time.clock, random: seededRandom(1), settings });
  return { time, cloud, environment: environmentOf(cloud) };
}

/** Returns a client for the work of other users of the cloud. */
export function clientOf({ time, environment }: OpenCloud, cloudName = 'real'): Client {
  const { clock } = time;
  return Client.of({
    cloudName,
    regionName: undefined,
    environment,
    clock,
    onApiCall: () => undefined,
    callsPerSecond: Infinity,
    makeCall: () => callOn(clock),
  });
}

/** Creates foreign servers. */
export async function addForeignServers(open: OpenCloud, count: number): Promise<void> {
  const client = clientOf(open);
  const call = callOn(open.time.clock);
  const flavors = await client.compute.listFlavors(call);
  const [image] = await client.image.listImages(call, { name: 'test-image' });
  const networks = await client.network.listNetworks(call);
  for (let index = 0; index < count; index += 1) {
    const spec = {
      name: `other-${index}`,
      flavorRef: flavors.find(({ name }) => name === 'm1.tiny')?.id ?? '',
      imageRef: image?.id ?? '',
      networks: [{ uuid: networks.find(({ name }) => name === 'private')?.id ?? '' }],
    };
    await client.compute.createServer(spec, call);
  }
  await client.close();
}
