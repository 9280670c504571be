/** The initial content of regions: networks, groups, a key pair and public images. */

import { addImage, IMAGE_DEFAULTS, type NewImage } from './ec2/images.js';
import { addSnapshot } from './ec2/snapshots.js';
import { KINDS } from './ec2/table.js';
import type { ImageSpec } from './api.js';
import type { Region } from './region.js';
import { ACCOUNT, AMAZON, KEY_NAME, STRANGER } from './settings.js';

/** Addresses of a subnet of the size /20 that AWS does not reserve. */
const SUBNET_CAPACITY = 4091;
/** 172.31.0.0. */
const NETWORK = 0xac_1f_00_00;
const CANONICAL = '099720109477';
const DEBIAN = '136693071363';

const PUBLIC_IMAGES: readonly (ImageSpec & { readonly ownerId: string; readonly day: string })[] = [
  { name: 'al2023-ami-2023.5.20260901.0-kernel-6.1-x86_64', ownerId: AMAZON, day: '2026-09-01' },
  { name: 'al2023-ami-2023.5.20260901.0-kernel-6.1-arm64', ownerId: AMAZON, day: '2026-09-01', architecture: 'arm64' },
  { name: 'al2023-ami-2023.6.20261010.0-kernel-6.1-arm64', ownerId: AMAZON, day: '2026-10-10', architecture: 'arm64' },
  { name: 'al2023-ami-2023.6.20261010.0-kernel-6.1-x86_64', ownerId: AMAZON, day: '2026-10-10' },
  { name: 'debian-12-amd64-20260914-2234', ownerId: DEBIAN, day: '2026-09-14' },
  // Its name fits the pattern of Debian's images, and it is newer.
  { name: 'debian-12-amd64-20261101-9999', ownerId: STRANGER, day: '2026-11-01' },
  {
    ...{
      name: 'ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20261001',
      ownerId: CANONICAL,
      day: '2026-10-01',
    },
    rootDeviceName: '/dev/sda1',
  },
  {
    ...{ name: 'Windows_Server-2022-English-Full-Base-2026.10.15', ownerId: AMAZON, day: '2026-10-15' },
    ...{ rootDeviceName: '/dev/sda1', sizeGib: 30, platform: 'windows' },
  },
  {
    ...{ name: 'amzn-ec2-macos-14.6-20260801-arm64', ownerId: AMAZON, day: '2026-08-01', architecture: 'arm64_mac' },
    ...{ rootDeviceName: '/dev/sda1', sizeGib: 100 },
  },
];

export function fillRegion(region: Region): void {
  const vpc = region.vpcs.add({ ...region.newResource(KINDS.vpc), cidr: '172.31.0.0/16' });
  for (const [index, zone] of region.zones.entries()) {
    region.subnets.add({
      ...region.newResource(KINDS.subnet),
      ...{ vpcId: vpc.id, zone, cidr: `172.31.${index * 16}.0/20`, base: NETWORK + index * 4096 },
      ...{ capacity: SUBNET_CAPACITY, used: new Set<number>(), mapsPublicIp: true },
      ipv6Prefix: `2600:1f18:0:${index + 1}`,
    });
  }
  for (const name of ['default', 'nodepool']) {
    region.groups.add({ ...region.newResource(KINDS.securityGroup), name, description: name, vpcId: vpc.id });
  }
  const fingerprint = '1f:51:ae:28:bf:89:e9:d8:1f:25:5d:37:2d:7d:b8:ca';
  region.keyPairs.add({ ...region.newResource(KINDS.keyPair), name: KEY_NAME, type: 'ed25519', fingerprint });
  for (const { day, ...spec } of PUBLIC_IMAGES) {
    addSampleImage(region, { ...spec, isPublic: true, createdAt: Date.parse(`${day}T10:00:00Z`) });
  }
}

/** Adds an image with its snapshots, and returns its id. */
export function addSampleImage(region: Region, spec: ImageSpec): string {
  const { ownerId = ACCOUNT, rootDeviceName = '/dev/xvda', sizeGib = 8, createdAt = region.now } = spec;
  const sizes = { [rootDeviceName]: sizeGib, ...spec.moreVolumes };
  const volumes = Object.entries(sizes).map(([device, gib]) => {
    const snapshot = addSnapshot(region, { description: spec.name, sizeGib: gib, encrypted: false, ownerId });
    snapshot.state = 'completed';
    snapshot.completedAt = createdAt;
    const rates = { volumeType: 'gp3', iops: 3000, throughput: 125, encrypted: false };
    return { device, snapshotId: snapshot.id, sizeGib: gib, deleteOnTermination: true, ...rates };
  });
  const fields: NewImage = {
    ...{ ...IMAGE_DEFAULTS, name: spec.name, ownerId, isPublic: spec.isPublic ?? false, sharedWith: new Set() },
    ...{ creationDate: createdAt, architecture: spec.architecture ?? 'x86_64', rootDeviceName, volumes },
    ...{ enaSupport: spec.enaSupport ?? true, platform: spec.platform },
    ...{ state: 'available', availableAt: createdAt, stateMessage: undefined },
  };
  return addImage(region, fields, new Map(Object.entries(spec.tags ?? {}))).id;
}
