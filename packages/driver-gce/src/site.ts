/** The first section of a site, and the lists to choose from; see `nodepool init`. */

import {
  machineTypeList,
  numberAt,
  siteList,
  stringAt,
  type Call,
  type JsonObject,
  type SiteDescription,
  type SiteGuide,
} from '@nodepool/core';
import type { Compute } from './client/compute.js';

/** A public image that is offered beside the images of the project, as `<project>/<family>`. */
const PUBLIC_IMAGE = 'debian-cloud/debian-12';

export const siteGuide: SiteGuide = {
  settings: [
    { key: 'project', question: 'id of the project' },
    { key: 'region', question: 'region, e.g. us-central1' },
    { key: 'key', question: 'public ssh key for logins, or its .pub file', publicKey: true },
    { key: 'credentials-file', question: 'credentials file of Google Cloud', optional: true },
  ],
  choices: { zone: 'required', 'machine-type': 'required', image: 'required', network: 'optional' },
  section: ({ project = '', region = '', key = '', 'credentials-file': file }, label) => {
    const account = { project, region, ...(file === undefined ? {} : { 'credentials-file': file }) };
    // Without a label, no call uses the zone.
    if (label === undefined) return { ...account, zone: `${region}-a` };
    const { name, username, maxServers, chosen } = label;
    return {
      ...account,
      zone: chosen.zone ?? '',
      'cloud-images': [{ name, ...imageKeys(chosen.image ?? ''), username, key }],
      pools: [
        {
          name: 'main',
          'max-servers': maxServers,
          ...(chosen.network === undefined ? {} : { network: chosen.network }),
          labels: [{ name, 'cloud-image': name, 'instance-type': chosen['machine-type'] ?? '' }],
        },
      ],
    };
  },
};

/** Returns the keys of an image: `<project>/<family>`, or a name or path of one image. */
function imageKeys(image: string): JsonObject {
  const [project = '', family, ...rest] = image.split('/');
  if (family === undefined || rest.length > 0) return { 'image-id': image };
  return { 'image-project': project, 'image-family': family };
}

/** Lists the zones of the region, the machine types of the first one, and the images of the project. */
export async function describeSite(compute: Compute, zones: readonly string[], call: Call): Promise<SiteDescription> {
  const [zone = ''] = zones;
  const [types, images] = await Promise.all([compute.listMachineTypes(zone, call), compute.listImages(call)]);
  const sizes = types.map((type) => ({
    name: stringAt(type, 'name') ?? '',
    cores: numberAt(type, 'guestCpus') ?? 0,
    ram: numberAt(type, 'memoryMb') ?? 0,
  }));
  const own = images
    .filter((image) => stringAt(image, 'status') === 'READY')
    .map((image) => ({
      name: stringAt(image, 'name') ?? '',
      note: stringAt(image, 'creationTimestamp')?.slice(0, 10),
    }));
  return {
    zone: siteList(zones.map((name) => ({ name }))),
    'machine-type': machineTypeList(sizes),
    image: siteList([{ name: PUBLIC_IMAGE, note: 'newest image of the family' }, ...own], true),
  };
}
