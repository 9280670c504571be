/** The whole chain, from image build to node deletion, on a simulated Azure. */

import { dirname } from 'node:path';
import { SAMPLE, SAMPLE_SUBNET_ID, startSimulatedAzure } from '@nodepool/simulated-azure';
import { describeChain, type ChainCloud } from './cloud-chain.js';

const type = { 'hardware-profile': { 'vm-size': 'Standard_B1ls' } };
const key = 'ssh-ed25519 AAAAC3Nz zuul';
/** Resource types that are created for nodes, followed by those for image uploads. */
const FOR_NODES = [
  'Microsoft.Compute/virtualMachines',
  'Microsoft.Network/networkInterfaces',
  'Microsoft.Network/publicIPAddresses',
  'Microsoft.Compute/disks',
] as const;

async function openCloud(): Promise<ChainCloud> {
  const cloud = await startSimulatedAzure({
    settings: { bootMs: 2000, deleteMs: 1000, workMs: 500, retryAfterSeconds: 1 },
  });
  cloud.setLimit('virtualMachines', 200);
  return {
    provider: {
      name: 'azure',
      driver: 'azure',
      'auth-path': cloud.authFile,
      rate: 100,
      location: SAMPLE.location,
      'resource-group': SAMPLE.resourceGroup,
      'resource-group-location': SAMPLE.location,
      'subnet-id': SAMPLE_SUBNET_ID,
      diskimages: [{ name: 'debian', username: 'zuul', key }],
      'cloud-images': [
        {
          name: 'debian-12',
          username: 'zuul',
          key,
          'image-reference': { publisher: 'Debian', offer: 'debian-12', sku: '12', version: 'latest' },
        },
      ],
      pools: [
        {
          name: 'main',
          'max-servers': 150,
          // No machine answers at the addresses of a simulated cloud.
          'host-key-checking': false,
          labels: [
            { name: 'built', diskimage: 'debian', ...type },
            { name: 'public', 'cloud-image': 'debian-12', ...type },
          ],
        },
      ],
    },
    images: () => cloud.list('Microsoft.Compute/images').length,
    leftovers: () => FOR_NODES.flatMap((kind) => cloud.list(kind)),
    instances: () => cloud.list('Microsoft.Compute/virtualMachines').length,
    calls: () => cloud.calls.count(),
    uploadLeftovers: () => cloud.list('Microsoft.Compute/disks'),
    close: () => cloud.close(),
  };
}

describeChain({
  driver: 'azure',
  driverPackage: dirname(require.resolve('@nodepool/driver-azure/package.json')),
  callsPerNode: 12,
  openCloud,
});
