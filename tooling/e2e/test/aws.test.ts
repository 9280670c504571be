/** The whole chain, from image build to node deletion, on a simulated Amazon Web Services. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BUCKET, KEY_NAME, REGION, startSimulatedAws, type InspectedInstance } from '@nodepool/simulated-aws';
import { describeChain, type ChainCloud } from './cloud-chain.js';

/** The daemons read the credentials like Amazon's other programs. */
const CREDENTIALS_VARIABLE = 'AWS_SHARED_CREDENTIALS_FILE';
const label = { 'key-name': KEY_NAME, 'instance-types': ['m6i.large', 'm5.large'] };

async function openCloud(): Promise<ChainCloud> {
  const cloud = await startSimulatedAws({
    settings: { pendingMs: 2000, shuttingDownMs: 1000, resourceMs: 500, importMs: 1000, readLagMs: 500 },
  });
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
  const file = join(folder, 'credentials');
  const { accessKeyId, secretAccessKey } = cloud.credentials;
  writeFileSync(file, `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`);
  process.env[CREDENTIALS_VARIABLE] = file;
  const { inspect } = cloud;
  const instances = (): readonly InspectedInstance[] =>
    inspect.instances().filter(({ state }) => state !== 'terminated');
  return {
    provider: {
      name: 'aws-east',
      driver: 'aws',
      'region-name': REGION,
      'endpoint-url': cloud.url,
      rate: 20,
      'interruption-queue': cloud.queueUrl,
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: [{ name: 'debian', username: 'zuul' }],
      'cloud-images': [{ name: 'amazon', username: 'ec2-user', 'image-id': cloud.publicImageId }],
      pools: [
        {
          name: 'main',
          'subnet-ids': Object.values(cloud.subnets).slice(0, 3),
          // No machine answers at the addresses of a simulated cloud.
          'host-key-checking': false,
          labels: [
            { ...label, name: 'built', diskimage: 'debian' },
            { ...label, name: 'public', 'cloud-image': 'amazon', 'use-spot': 'prefer' },
          ],
        },
      ],
    },
    images: () => inspect.images().filter(({ state }) => state === 'available').length,
    leftovers: () => [...instances(), ...inspect.volumes(), ...inspect.networkInterfaces()],
    instances: () => instances().length,
    calls: () => cloud.calls.count(),
    uploadLeftovers: () => [...inspect.objects(), ...inspect.uploads()],
    async close() {
      Reflect.deleteProperty(process.env, CREDENTIALS_VARIABLE);
      rmSync(folder, { recursive: true });
      await cloud.close();
    },
  };
}

describeChain({
  driver: 'aws',
  driverPackage: dirname(require.resolve('@nodepool/driver-aws/package.json')),
  callsPerNode: 2,
  openCloud,
});
