/** The whole chain, from image build to node deletion, on a simulated Google Compute Engine. */

import { dirname } from 'node:path';
import { startSimulatedGce } from '@nodepool/simulated-gce';
import { describeChain, type ChainCloud } from './cloud-chain.js';

const type = { 'instance-type': 'e2-micro' };

async function openCloud(): Promise<ChainCloud> {
  const cloud = await startSimulatedGce({
    settings: { bootMs: 2000, deleteMs: 1000, operationMs: 500, listLagMs: 500 },
  });
  return {
    provider: {
      name: 'google',
      driver: 'gce',
      project: 'acme',
      region: 'us-central1',
      zone: 'us-central1-a',
      rate: 100,
      'api-endpoint': cloud.url,
      'storage-endpoint': cloud.url,
      'storage-bucket': 'acme-images',
      'credentials-file': cloud.credentialsFile,
      diskimages: [{ name: 'debian' }],
      'cloud-images': [{ name: 'debian-12', 'image-project': 'debian-cloud', 'image-family': 'debian-12' }],
      pools: [
        {
          name: 'main',
          zones: ['us-central1-a', 'us-central1-b'],
          // No machine answers at the addresses of a simulated cloud.
          'host-key-checking': false,
          labels: [
            { name: 'built', diskimage: 'debian', ...type },
            { name: 'public', 'cloud-image': 'debian-12', ...type },
          ],
        },
      ],
    },
    images: () => cloud.inspect.images().length,
    leftovers: () => cloud.inspect.instances(),
    instances: () => cloud.inspect.instances().length,
    calls: () => cloud.calls.count(),
    uploadLeftovers: () => cloud.inspect.objects(),
    close: () => cloud.close(),
  };
}

describeChain({
  driver: 'gce',
  driverPackage: dirname(require.resolve('@nodepool/driver-gce/package.json')),
  callsPerNode: 6,
  openCloud,
});
