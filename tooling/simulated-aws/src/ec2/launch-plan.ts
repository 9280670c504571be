/** Checks launches as EC2 does, and resolves what they refer to. */

import type { RunInstancesRequest } from '@aws-sdk/client-ec2';
import type { Market } from '../api.js';
import type { AwsCall } from '../call.js';
import { AwsError, invalidCombination, invalidValue, missing, refuseUnsupported } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { ACCOUNT, INSTANCE_PROFILE } from '../settings.js';
import { requireImage } from './image-access.js';
import { INSTANCE_TYPES, needsEna, type InstanceType } from './instance-types.js';
import { checkNetwork, type NetworkPlan } from './launch-network.js';
import { checkVolumes, type VolumePlan } from './launch-volumes.js';
import type { Host, Image } from './records.js';
import { tagsByType } from './tags.js';
import { withTemplate } from './templates.js';

export interface LaunchPlan {
  readonly input: RunInstancesRequest;
  readonly image: Image;
  readonly type: InstanceType;
  readonly market: Market;
  readonly maxPrice: string | undefined;
  readonly network: NetworkPlan;
  readonly volumes: readonly VolumePlan[];
  readonly keyName: string | undefined;
  readonly profileArn: string | undefined;
  readonly userData: string | undefined;
  readonly tenancy: string;
  /** Named host; undefined if EC2 selects one. */
  readonly host: Host | undefined;
  readonly tags: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** Tags of AWS itself for the instances. */
  readonly systemTags: ReadonlyMap<string, string>;
}

const TAGGED = ['instance', 'volume', 'network-interface', 'spot-instances-request', 'elastic-gpu'];
const MAX_USER_DATA_BYTES = 16_384;

/** Parameters that the simulation does not have. */
const UNSUPPORTED: readonly (keyof RunInstancesRequest)[] = [
  ...([
    'KernelId',
    'RamdiskId',
    'ElasticGpuSpecification',
    'ElasticInferenceAccelerators',
    'HibernationOptions',
  ] as const),
  ...(['LicenseSpecifications', 'EnclaveOptions', 'PrivateIpAddress', 'Ipv6Addresses', 'AdditionalInfo'] as const),
  ...(['CapacityReservationSpecification', 'NetworkPerformanceOptions', 'Operator', 'SecondaryInterfaces'] as const),
  ...(['EnablePrimaryIpv6', 'DisableApiStop', 'PrivateDnsNameOptions', 'MaintenanceOptions'] as const),
];
const UNSUPPORTED_PLACEMENT = [
  ...(['Affinity', 'GroupName', 'GroupId', 'PartitionNumber', 'SpreadDomain', 'HostResourceGroupArn'] as const),
  'AvailabilityZoneId',
] as const;

/** Returns what a launch consists of. Throws EC2's error if a parameter is wrong. */
export function planLaunch(region: Region, given: RunInstancesRequest, call: AwsCall): LaunchPlan {
  const { input, systemTags } = withTemplate(region, given, call);
  refuseUnsupported(input, UNSUPPORTED);
  refuseUnsupported(input.Placement, UNSUPPORTED_PLACEMENT);
  checkCounts(input);
  const tags = tagsByType(input.TagSpecifications, TAGGED);
  if (tags.size > 0) call.authorize('ec2:CreateTags');
  if (input.ImageId === undefined) throw missing('ImageId');
  const image = requireImage(region, input.ImageId, call);
  if (image.state !== 'available') {
    throw new AwsError('InvalidAMIID.Unavailable', `The image id '[${image.id}]' is no longer available`);
  }
  const type = requireType(input.InstanceType ?? 'm1.small');
  checkArchitecture(type, image);
  const { market, maxPrice } = marketOf(input, type);
  const network = checkNetwork(region, input, type, market, call);
  const volumes = checkVolumes(region, input.BlockDeviceMappings ?? [], image, call);
  checkMetadata(input);
  checkProcessor(input, type);
  const { tenancy, host } = placementOf(region, input, type, market, network.zone, call);
  return {
    ...{ input, image, type, market, maxPrice, network, volumes, tags, systemTags, tenancy, host },
    keyName: keyOf(region, input, call),
    profileArn: profileOf(input, call),
    userData: userDataOf(input),
  };
}

function checkCounts({ MinCount: min, MaxCount: max }: RunInstancesRequest): void {
  if (min === undefined || min < 1) throw invalidValue(`Value (${min}) for parameter minCount is invalid.`);
  if (max === undefined || max < min) {
    throw invalidValue(`Value (${max}) for parameter maxCount is invalid. It must not be less than minCount ${min}`);
  }
}

export function requireType(name: string): InstanceType {
  const type = INSTANCE_TYPES.get(name);
  if (type === undefined) throw invalidValue(`Invalid value '${name}' for InstanceType.`);
  return type;
}

function checkArchitecture(type: InstanceType, image: Image): void {
  if (image.virtualization !== 'hvm') {
    const message = `The instance type '${type.name}' requires hvm; the virtualization of the AMI is ${image.virtualization}.`;
    throw invalidCombination(message);
  }
  if (type.architecture !== image.architecture) {
    const message = `The architecture '${type.architecture}' of the specified instance type does not match the \
architecture '${image.architecture}' of the specified AMI.`;
    throw invalidValue(message);
  }
  if (needsEna(type) && !image.enaSupport) {
    const message = `Enhanced networking with the Elastic Network Adapter (ENA) is required for the '${type.name}' \
instance type. Ensure that you are using an AMI that is enabled for ENA.`;
    throw invalidCombination(message);
  }
}

function marketOf(
  { InstanceMarketOptions: options }: RunInstancesRequest,
  type: InstanceType,
): Pick<LaunchPlan, 'market' | 'maxPrice'> {
  if (options?.MarketType === undefined && options?.SpotOptions === undefined) {
    return { market: 'on-demand', maxPrice: undefined };
  }
  if (options.MarketType !== 'spot') throw invalidValue(`The market type ${options.MarketType} is not supported`);
  const {
    SpotInstanceType: kind,
    InstanceInterruptionBehavior: behavior,
    MaxPrice: maxPrice,
  } = options.SpotOptions ?? {};
  if (kind === 'persistent') {
    throw new AwsError('UnsupportedOperation', 'The simulation has no persistent Spot requests');
  }
  if (behavior !== undefined && behavior !== 'terminate') {
    throw invalidCombination(`The interruption behavior ${behavior} requires a persistent Spot request`);
  }
  if (!type.spot) throw invalidCombination(`The instance type ${type.name} is not supported for Spot instances.`);
  if (maxPrice !== undefined && !(Number(maxPrice) > 0)) throw invalidValue(`Invalid value '${maxPrice}' for MaxPrice`);
  return { market: 'spot', maxPrice };
}

function keyOf(region: Region, { KeyName: name }: RunInstancesRequest, { asOf }: AwsCall): string | undefined {
  if (name === undefined) return undefined;
  if (region.keyPairs.seen(asOf).some((key) => key.name === name)) return name;
  throw new AwsError('InvalidKeyPair.NotFound', `The key pair '${name}' does not exist`);
}

function profileOf({ IamInstanceProfile: profile }: RunInstancesRequest, call: AwsCall): string | undefined {
  if (profile === undefined) return undefined;
  const { Arn: arn, Name: name } = profile;
  if (arn !== undefined && name !== undefined) {
    throw invalidCombination(
      `The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'`,
    );
  }
  const known = `arn:aws:iam::${ACCOUNT}:instance-profile/${INSTANCE_PROFILE}`;
  if ((arn ?? known) !== known || (name ?? INSTANCE_PROFILE) !== INSTANCE_PROFILE) {
    const parameter = arn === undefined ? 'iamInstanceProfile.name' : 'iamInstanceProfile.arn';
    const message = `Value (${arn ?? name}) for parameter ${parameter} is invalid. Invalid IAM Instance Profile`;
    throw invalidValue(message);
  }
  call.authorize('iam:PassRole');
  return known;
}

function userDataOf({ UserData: data }: RunInstancesRequest): string | undefined {
  if (data === undefined) return undefined;
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(data) || data.length % 4 !== 0) {
    throw new AwsError('InvalidUserData.Malformed', 'Invalid BASE64 encoding of user data.');
  }
  if (Buffer.from(data, 'base64').length > MAX_USER_DATA_BYTES) {
    throw invalidValue(`User data is limited to ${MAX_USER_DATA_BYTES} bytes`);
  }
  return data;
}

function checkMetadata({ MetadataOptions: options }: RunInstancesRequest): void {
  const hops = options?.HttpPutResponseHopLimit;
  if (hops !== undefined && (hops < 1 || hops > 64)) {
    throw invalidValue(
      `Value (${hops}) for parameter HttpPutResponseHopLimit is invalid. Expecting a value of 1 to 64.`,
    );
  }
}

function checkProcessor(
  { CpuOptions: cpu, CreditSpecification: credits }: RunInstancesRequest,
  type: InstanceType,
): void {
  if (credits !== undefined && !type.burstable) {
    throw invalidCombination(`The parameter creditSpecification is not supported by ${type.name}.`);
  }
  const threads = type.vcpus / type.cores;
  const { CoreCount: cores = type.cores, ThreadsPerCore: perCore = threads } = cpu ?? {};
  if (cores < 1 || cores > type.cores || perCore < 1 || perCore > threads) {
    throw invalidValue(`The CPU options ${cores} × ${perCore} are invalid for ${type.name}`);
  }
}

function placementOf(
  region: Region,
  { Placement: placement }: RunInstancesRequest,
  type: InstanceType,
  market: Market,
  zone: string,
  { asOf }: AwsCall,
): Pick<LaunchPlan, 'tenancy' | 'host'> {
  const tenancy = placement?.Tenancy ?? 'default';
  if (type.quotaClass === 'hosts' && tenancy !== 'host') {
    throw new AwsError('Unsupported', `The instance type ${type.name} can only be launched with the tenancy host`);
  }
  if (tenancy !== 'host') {
    if (placement?.HostId !== undefined) throw invalidCombination('A host requires the tenancy host');
    return { tenancy, host: undefined };
  }
  if (market === 'spot') throw invalidCombination('Spot instances do not support the tenancy host');
  if (placement?.HostId === undefined) return { tenancy, host: undefined };
  const host = region.hosts.one(placement.HostId, asOf);
  if (host.instanceType.name !== type.name) {
    throw new AwsError('UnsupportedInstanceTypeOnHost', `The host ${host.id} is for ${host.instanceType.name}`);
  }
  if (host.zone !== zone) throw new AwsError('ZonesMismatched', `The host ${host.id} is in ${host.zone}`);
  if (host.releasedAt !== undefined || host.availableAt > region.now) {
    throw new AwsError('InvalidHostState', `The host ${host.id} is not available`);
  }
  return { tenancy, host };
}
