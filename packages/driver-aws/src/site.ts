/** The first section of a site, and the lists to choose from; see `nodepool init`. */

import { machineTypeList, siteList, type Call, type SiteDescription, type SiteGuide } from '@nodepool/core';
import type { Image, Subnet } from '@aws-sdk/client-ec2';
import { COMMON_ARCHITECTURE, tagsIn, type Ec2 } from './client/ec2.js';

/** Sizes of types that suit nodes; EC2 has about a thousand types. */
const SIZES = ['medium', 'large', 'xlarge', '2xlarge'];
/** Images of Amazon Linux. The newest one is offered beside the images of the account. */
const AMAZON_LINUX = 'al2023-ami-2023.*';
const ARCHITECTURE = { Name: 'architecture', Values: [COMMON_ARCHITECTURE] };

export const siteGuide: SiteGuide = {
  settings: [
    { key: 'region-name', question: 'region, e.g. us-east-1' },
    { key: 'key-name', question: 'name of an EC2 key pair for logins' },
    { key: 'profile-name', question: "profile of AWS's configuration files", optional: true },
  ],
  choices: { 'machine-type': 'required', image: 'required', network: 'if-listed', zone: 'optional' },
  section: ({ 'region-name': region = '', 'key-name': key = '', 'profile-name': profile }, label) => {
    const account = { 'region-name': region, ...(profile === undefined ? {} : { 'profile-name': profile }) };
    if (label === undefined) return account;
    const { name, username, maxServers, chosen } = label;
    return {
      ...account,
      'cloud-images': [{ name, 'image-id': chosen.image ?? '', username }],
      pools: [
        {
          name: 'main',
          'max-servers': maxServers,
          ...(chosen.zone === undefined ? {} : { 'availability-zone': chosen.zone }),
          ...(chosen.network === undefined ? {} : { 'subnet-id': chosen.network }),
          labels: [{ name, 'cloud-image': name, 'instance-type': chosen['machine-type'] ?? '', 'key-name': key }],
        },
      ],
    };
  },
};

/** Lists subnets, common types, and images of the account and of Amazon, of one architecture so that they match. */
export async function describeSite(ec2: Ec2, call: Call): Promise<SiteDescription> {
  const [types, subnets, own, amazon] = await Promise.all([
    ec2.commonTypes(SIZES, call),
    ec2.subnets(undefined, call),
    ec2.images({ owners: ['self'], filters: [{ Name: 'state', Values: ['available'] }, ARCHITECTURE] }, call),
    ec2.images(
      {
        owners: ['amazon'],
        filters: [{ Name: 'name', Values: [AMAZON_LINUX] }, ARCHITECTURE],
      },
      call,
    ),
  ]);
  const sizes = types.map(({ InstanceType = '', VCpuInfo, MemoryInfo }) => ({
    name: InstanceType,
    cores: VCpuInfo?.DefaultVCpus ?? 0,
    ram: MemoryInfo?.SizeInMiB ?? 0,
  }));
  return {
    'machine-type': { ...machineTypeList(sizes), partial: true },
    image: siteList([...newestFirst(own), ...newestFirst(amazon).slice(0, 1)].flatMap(imageOption), true),
    network: siteList([...subnets].sort(defaultsFirst).flatMap(subnetOption)),
    zone: siteList(subnets.flatMap(({ AvailabilityZone: name }) => (name === undefined ? [] : [{ name }]))),
  };
}

function newestFirst(images: readonly Image[]): readonly Image[] {
  return [...images].sort((a, b) => (b.CreationDate ?? '').localeCompare(a.CreationDate ?? ''));
}

function defaultsFirst(a: Subnet, b: Subnet): number {
  return Number(b.DefaultForAz ?? false) - Number(a.DefaultForAz ?? false);
}

function imageOption({ ImageId: name, Name }: Image): readonly { name: string; note: string | undefined }[] {
  return name === undefined ? [] : [{ name, note: Name }];
}

function subnetOption({ SubnetId: name, AvailabilityZone = '', CidrBlock = '', Tags }: Subnet): readonly {
  name: string;
  note: string;
}[] {
  const { Name: title } = tagsIn(Tags);
  return name === undefined ? [] : [{ name, note: [title, AvailabilityZone, CidrBlock].filter(Boolean).join(', ') }];
}
