/** The whole chain, from image build to node deletion, on a simulated AWS. */

import { dirname } from 'node:path';
import { BUCKET, KEY_NAME, REGION, startSimulatedAws } from '@nodepool/simulated-aws';
import { describeChain, type ChainCloud } from './cloud-chain.js';

const type = { 'instance-type': 'm5.large', 'key-name': KEY_NAME };

async function openCloud(): Promise<ChainCloud> {
  const cloud = await startSimulatedAws({
    settings: { pendingMs: 2000, shuttingDownMs: 1000, resourceMs: 500, importMs: 1000, readLagMs: 500 },
  });
  const { accessKeyId, secretAccessKey } = cloud.credentials;
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
  const instances = (): readonly unknown[] => cloud.inspect.instances().filter(({ state }) => state !== 'terminated');
  return {
    provider: {
      ...{ name: 'east', driver: 'aws', 'region-name': REGION, 'endpoint-url': cloud.url },
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: [{ name: 'debian' }],
      'cloud-images': [{ name: 'amazon', username: 'ec2-user', 'image-id': cloud.publicImageId }],
      pools: [
        {
          name: 'main',
          'subnet-ids': Object.values(cloud.subnets).slice(0, 2),
          // No machine answers at the addresses of a simulated cloud.
          'host-key-checking': false,
          labels: [
            { name: 'built', diskimage: 'debian', ...type },
            { name: 'public', 'cloud-image': 'amazon', ...type },
          ],
        },
      ],
    },
    images: () => cloud.inspect.images().filter(({ state }) => state === 'available').length,
    leftovers: () => [...instances(), ...cloud.inspect.volumes(), ...cloud.inspect.networkInterfaces()],
    instances: () => instances().length,
    calls: () => cloud.calls.count('ec2'),
    uploadLeftovers: () => [...cloud.inspect.objects(), ...cloud.inspect.uploads()],
    close: () => cloud.close(),
  };
}

describeChain({
  driver: 'aws',
  driverPackage: dirname(require.resolve('@nodepool/driver-aws/package.json')),
  callsPerNode: 1,
  openCloud,
});
