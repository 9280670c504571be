/** The first section of a site, and the lists to choose from; see `nodepool init`. */

import { machineTypeList, siteList, type Call, type SiteDescription, type SiteGuide } from '@nodepool/core';
import type { Client } from './client/client.js';

/** Seconds between two calls; the default of 1 is that of the Python Nodepool, and slow. */
const RATE = 0.1;

export const siteGuide: SiteGuide = {
  settings: [
    { key: 'cloud', question: 'name of the cloud in clouds.yaml' },
    { key: 'region-name', question: 'region', optional: true },
    { key: 'key-name', question: 'key pair for logins', optional: true },
  ],
  choices: { 'machine-type': 'required', image: 'required', network: 'if-listed', zone: 'optional' },
  section: ({ cloud = '', 'region-name': region, 'key-name': key }, label) => {
    const account = { cloud, ...(region === undefined ? {} : { 'region-name': region }), rate: RATE };
    if (label === undefined) return account;
    const { name, username, maxServers, chosen } = label;
    return {
      ...account,
      'cloud-images': [{ name, 'image-name': chosen.image ?? '', username }],
      pools: [
        {
          name: 'main',
          'max-servers': maxServers,
          ...(chosen.zone === undefined ? {} : { 'availability-zones': [chosen.zone] }),
          ...(chosen.network === undefined ? {} : { networks: [chosen.network] }),
          labels: [
            {
              ...{ name, 'cloud-image': name, 'flavor-name': chosen['machine-type'] ?? '' },
              ...(key === undefined ? {} : { 'key-name': key }),
            },
          ],
        },
      ],
    };
  },
};

/** Lists what the project can use. Networks of the project come first; floating addresses need no choice. */
export async function describeSite(client: Client, call: Call): Promise<SiteDescription> {
  const [flavors, images, zones, networks] = await Promise.all([
    client.compute.listFlavors(call),
    client.image.listImages(call, { status: 'active' }),
    client.compute.listAvailabilityZones(call),
    (await client.has('network')) ? client.network.listNetworks(call) : [],
  ]);
  const projectId = await client.projectId();
  const usable = networks.filter(({ external }) => !external);
  const own = usable.filter((network) => network.projectId === projectId);
  return {
    'machine-type': machineTypeList(flavors.map(({ name, vcpus, ram }) => ({ name, cores: vcpus, ram }))),
    image: siteList(
      [...images]
        .sort((a, b) => b.createdAt.localeCompare(a.createdAt))
        .map(({ name, createdAt }) => ({ name, note: createdAt.slice(0, 10) })),
    ),
    zone: siteList(zones.map((name) => ({ name }))),
    network: siteList([...own, ...usable].map(({ name, id }) => ({ name, note: id }))),
  };
}
