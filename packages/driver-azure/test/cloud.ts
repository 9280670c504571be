/** A simulated Azure and matching provider sections for the tests of this package. */

import { seededRandom } from '@nodepool/core/testing';
import type { JsonObject } from '@nodepool/core';
import {
  SAMPLE_SUBNET_ID,
  startSimulatedAzure,
  type CloudSettings,
  type SimulatedAzure,
} from '@nodepool/simulated-azure';
import { simulatedTime, type TestTime } from '@nodepool/driver-kit';

export const PROVIDER = 'test';

/** Returns a provider section with a pool `main`, a label `small` and the given keys. */
export function section(change: JsonObject = {}, label: JsonObject = {}, pool: JsonObject = {}): JsonObject {
  return {
    name: PROVIDER,
    driver: 'azure',
    rate: 0,
    location: 'centralus',
    'resource-group': 'nodepool',
    'resource-group-location': 'centralus',
    'subnet-id': SAMPLE_SUBNET_ID,
    'zuul-public-key': 'ssh-ed25519 AAAAC3Nz zuul',
    'cloud-images': [
      {
        name: 'debian',
        username: 'zuul',
        'image-reference': { publisher: 'Debian', offer: 'debian-12', sku: '12', version: 'latest' },
      },
    ],
    pools: [
      {
        name: 'main',
        'max-servers': 100,
        labels: [
          { name: 'small', 'cloud-image': 'debian', 'hardware-profile': { 'vm-size': 'Standard_B1ls' }, ...label },
        ],
        ...pool,
      },
    ],
    ...change,
  };
}

export interface OpenCloud {
  readonly time: TestTime;
  readonly cloud: SimulatedAzure;
  readonly env: Readonly<Record<string, string>>;
}

/** Opens a simulated cloud on simulated time. */
export async function openCloud(settings: Partial<CloudSettings> = {}): Promise<OpenCloud> {
  const time = simulatedTime();
  const cloud = await startSimulatedAzure({ clock: time.clock, random: seededRandom(1), settings });
  return { time, cloud, env: { AZURE_AUTH_LOCATION: cloud.authFile } };
}
