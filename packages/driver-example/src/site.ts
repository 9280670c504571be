/** The first section of a site, and the lists to choose from; see `nodepool init`. */

import { machineTypeList, siteList, type Call, type SiteDescription, type SiteGuide } from '@nodepool/core';
import type { ExampleCloudApi } from './client/client.js';
import { allPages } from './client/pages.js';

/** An image of a cloud that accepts every name. */
const ANY_IMAGE = ['debian-12'];

export const siteGuide: SiteGuide = {
  settings: [{ key: 'endpoint', question: 'URL of nodepool-example-cloud', optional: true }],
  choices: { 'machine-type': 'required', image: 'required', zone: 'optional' },
  section: ({ endpoint }, label) => {
    const account = endpoint === undefined ? {} : { endpoint };
    if (label === undefined) return account;
    const { name, username, maxServers, chosen } = label;
    return {
      ...account,
      'cloud-images': [{ name, image: chosen.image ?? '', username }],
      pools: [
        {
          name: 'main',
          'max-servers': maxServers,
          ...(chosen.zone === undefined ? {} : { 'availability-zones': [chosen.zone] }),
          labels: [{ name, 'cloud-image': name, size: chosen['machine-type'] ?? '' }],
        },
      ],
    };
  },
};

export async function describeSite(api: ExampleCloudApi, call: Call): Promise<SiteDescription> {
  const { sizes, zones, publicImages } = await api.describe(call);
  const images = await allPages((marker) => api.listImages(marker, call));
  return {
    'machine-type': machineTypeList(sizes),
    image: siteList(
      [...(publicImages ?? ANY_IMAGE), ...images.map(({ name }) => name)].map((name) => ({ name })),
      publicImages === null,
    ),
    zone: siteList(zones.map((name) => ({ name }))),
  };
}
