/** The first section of a site, and the lists to choose from; see `nodepool init`. */

import {
  isDriverError,
  machineTypeList,
  siteList,
  type Call,
  type JsonObject,
  type SiteDescription,
  type SiteGuide,
} from '@nodepool/core';
import { sameLocation } from './identity.js';
import type { ProviderSession } from './provider-session.js';

/** An image of the marketplace, `<publisher>:<offer>:<sku>:<version>`, that is offered beside those of the group. */
const MARKETPLACE_IMAGE = 'Debian:debian-12:12-gen2:latest';

export const siteGuide: SiteGuide = {
  settings: [
    { key: 'location', question: 'region, e.g. centralus' },
    { key: 'resource-group', question: 'resource group, which has the network' },
    { key: 'zuul-public-key', question: 'public ssh key for logins, or its .pub file', publicKey: true },
    { key: 'auth-path', question: 'JSON file with the credentials', optional: true },
  ],
  choices: { 'machine-type': 'required', image: 'required', network: 'required', zone: 'optional' },
  section: (settings, label) => {
    const { location = '', 'resource-group': group = '', 'zuul-public-key': key = '', 'auth-path': auth } = settings;
    const account = {
      location,
      'resource-group': group,
      'resource-group-location': location,
      'zuul-public-key': key,
      ...(auth === undefined ? {} : { 'auth-path': auth }),
    };
    // Without a label, no call uses the network.
    if (label === undefined) return { ...account, network: 'default' };
    const { name, username, maxServers, chosen } = label;
    const network = chosen.network ?? '';
    return {
      ...account,
      ...(network.startsWith('/') ? { 'subnet-id': network } : { network }),
      'cloud-images': [{ name, ...imageKeys(chosen.image ?? ''), username }],
      pools: [
        {
          name: 'main',
          'max-servers': maxServers,
          ...(chosen.zone === undefined ? {} : { zones: [chosen.zone] }),
          labels: [{ name, 'cloud-image': name, 'hardware-profile': { 'vm-size': chosen['machine-type'] ?? '' } }],
        },
      ],
    };
  },
};

function imageKeys(image: string): JsonObject {
  if (image.startsWith('/')) return { 'image-id': image };
  const [publisher = '', offer = '', sku = '', version = 'latest'] = image.split(':');
  return { 'image-reference': { publisher, offer, sku, version } };
}

/** Lists the VM sizes of the location, and the images and subnets of the resource group, which may not exist yet. */
export async function describeSite(session: ProviderSession, call: Call): Promise<SiteDescription> {
  const { client, config, lookups } = session;
  const [sizes, images, networks] = await Promise.all([
    lookups.sizes.read(),
    ifGroupExists(client.listImages(call)),
    ifGroupExists(client.listNetworks(call)),
  ]);
  const usable = [...sizes.values()].filter(({ refused, common }) => refused === undefined && common);
  const own = images.filter(({ location = '' }) => sameLocation(location, config.location));
  return {
    'machine-type': { ...machineTypeList(usable), partial: true },
    image: siteList(
      [
        ...own.flatMap(({ id, name }) => (id === undefined ? [] : [{ name: id, note: name }])),
        { name: MARKETPLACE_IMAGE, note: 'of the marketplace' },
      ],
      true,
    ),
    // Subnets have ids of their own, and networks of other groups can be named by the id of a subnet.
    network: siteList(
      networks.flatMap(({ name = '', properties }) =>
        (properties?.subnets ?? []).flatMap((subnet) =>
          subnet.id === undefined ? [] : [{ name: subnet.id, note: `${name}, ${subnet.name ?? ''}` }],
        ),
      ),
      true,
    ),
  };
}

async function ifGroupExists<T>(list: Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await list;
  } catch (error) {
    if (isDriverError(error) && error.code === 'not-found') return [];
    throw error;
  }
}
