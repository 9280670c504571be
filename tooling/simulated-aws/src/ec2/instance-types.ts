/** Instance types, with the numbers that Amazon publishes: https://docs.aws.amazon.com/ec2/latest/instancetypes. */

import type { InstanceTypeInfo } from '@aws-sdk/client-ec2';

/** Groups of families that share a quota of vCPUs. */
export type QuotaClass =
  | 'standard'
  | 'dl'
  | 'f'
  | 'g'
  | 'high-memory'
  | 'inf'
  | 'p'
  | 'x'
  | 'trn'
  | 'hpc'
  /** Types that run only on dedicated hosts. */
  | 'hosts';

export interface InstanceType {
  readonly name: string;
  readonly family: string;
  readonly quotaClass: QuotaClass;
  readonly vcpus: number;
  readonly cores: number;
  readonly memoryGib: number;
  readonly architecture: 'x86_64' | 'arm64' | 'x86_64_mac' | 'arm64_mac';
  readonly spot: boolean;
  readonly bareMetal: boolean;
  readonly dedicatedHosts: boolean;
  /** Maximum number of instances of the type on a dedicated host. */
  readonly perHost: number;
  readonly burstable: boolean;
  readonly gpu:
    { readonly name: string; readonly manufacturer: string; readonly count: number; readonly gib: number } | undefined;
  /** True if EBS-optimization is off unless a launch asks for it. */
  readonly ebsOptimizedIsOptional: boolean;
  /** On-demand price in USD per hour, for comparisons only. */
  readonly price: number;
}

/** Name, vCPUs, cores, memory in GiB and dollars per hour. */
type Row = readonly [name: string, vcpus: number, cores: number, memoryGib: number, price: number];

type Common = Partial<Omit<InstanceType, 'name' | 'vcpus' | 'cores' | 'memoryGib' | 'price' | 'quotaClass'>>;

const ARM: Common = { architecture: 'arm64' };
const METAL: Common = { bareMetal: true, perHost: 1 };
const NO_SPOT: Common = { spot: false };
const NO_HOSTS: Common = { dedicatedHosts: false };

const T4 = { name: 'T4', manufacturer: 'NVIDIA', count: 1, gib: 16 } as const;
const A10G = { name: 'A10G', manufacturer: 'NVIDIA', count: 1, gib: 24 } as const;
const L4 = { name: 'L4', manufacturer: 'NVIDIA', count: 1, gib: 24 } as const;
const V100 = { name: 'V100', manufacturer: 'NVIDIA', count: 1, gib: 16 } as const;
const A100 = { name: 'A100', manufacturer: 'NVIDIA', count: 8, gib: 40 } as const;
const GAUDI = { name: 'Gaudi HL-205', manufacturer: 'Habana', count: 8, gib: 32 } as const;

const TYPES: readonly (readonly [quotaClass: QuotaClass, common: Common, ...rows: readonly Row[]])[] = [
  ['standard', { burstable: true, ...NO_HOSTS }, ['t2.micro', 1, 1, 1, 0.0116], ['t2.medium', 2, 2, 4, 0.0464]],
  [
    ...(['standard', { burstable: true, perHost: 32 }] as const),
    ...([
      ['t3.micro', 2, 1, 1, 0.0104],
      ['t3.medium', 2, 1, 4, 0.0416],
      ['t3.xlarge', 4, 2, 16, 0.1664],
    ] as const),
  ],
  [
    'standard',
    { ...ARM, burstable: true, ...NO_HOSTS },
    ['t4g.micro', 2, 2, 1, 0.0084],
    ['t4g.medium', 2, 2, 4, 0.0336],
  ],
  ['standard', { ebsOptimizedIsOptional: true, perHost: 32 }, ['m3.medium', 1, 1, 3.75, 0.067]],
  [
    ...(['standard', { perHost: 48 }] as const),
    ...([
      ['m5.large', 2, 1, 8, 0.096],
      ['m5.xlarge', 4, 2, 16, 0.192],
      ['m5.2xlarge', 8, 4, 32, 0.384],
    ] as const),
    ['m5.24xlarge', 96, 48, 384, 4.608],
  ],
  ['standard', METAL, ['m5.metal', 96, 48, 384, 4.608], ['m6i.metal', 128, 64, 512, 6.144]],
  ['standard', { perHost: 64 }, ['m6i.large', 2, 1, 8, 0.096], ['m6i.xlarge', 4, 2, 16, 0.192]],
  ['standard', { perHost: 96 }, ['m6a.large', 2, 1, 8, 0.0864], ['m7a.large', 2, 2, 8, 0.1159]],
  ['standard', { perHost: 96 }, ['m7i.large', 2, 1, 8, 0.1008], ['m7i.xlarge', 4, 2, 16, 0.2016]],
  ['standard', ARM, ['m6g.large', 2, 2, 8, 0.077], ['m7g.large', 2, 2, 8, 0.0816], ['m7g.xlarge', 4, 4, 16, 0.1632]],
  ['standard', {}, ['c5.large', 2, 1, 4, 0.085], ['c5.xlarge', 4, 2, 8, 0.17], ['c5.9xlarge', 36, 18, 72, 1.53]],
  ['standard', {}, ['c6i.large', 2, 1, 4, 0.085], ['c7i.xlarge', 4, 2, 8, 0.1785], ['c7i.2xlarge', 8, 4, 16, 0.357]],
  ['standard', ARM, ['c6g.large', 2, 2, 4, 0.068], ['c7g.xlarge', 4, 4, 8, 0.145]],
  ['standard', {}, ['r5.large', 2, 1, 16, 0.126], ['r6i.xlarge', 4, 2, 32, 0.252]],
  ['standard', ARM, ['r6g.large', 2, 2, 16, 0.1008]],
  ['standard', {}, ['i3.large', 2, 1, 15.25, 0.156], ['d3.xlarge', 4, 2, 32, 0.499], ['z1d.large', 2, 1, 16, 0.186]],
  ['standard', { ebsOptimizedIsOptional: true }, ['h1.2xlarge', 8, 4, 32, 0.468]],
  ['standard', ARM, ['im4gn.large', 2, 2, 8, 0.181], ['is4gen.medium', 1, 1, 6, 0.144], ['a1.large', 2, 2, 4, 0.051]],
  ['f', {}, ['f1.2xlarge', 8, 4, 122, 1.65]],
  ['g', { gpu: T4 }, ['g4dn.xlarge', 4, 2, 16, 0.526]],
  ['g', { gpu: A10G }, ['g5.xlarge', 4, 2, 16, 1.006]],
  ['g', { gpu: L4 }, ['g6.xlarge', 4, 2, 16, 0.8048], ['gr6.4xlarge', 16, 8, 128, 1.539]],
  ['g', {}, ['vt1.3xlarge', 12, 6, 24, 0.65]],
  ['p', { gpu: V100 }, ['p3.2xlarge', 8, 4, 61, 3.06]],
  ['p', { gpu: A100 }, ['p4d.24xlarge', 96, 48, 1152, 32.7726]],
  ['dl', { gpu: GAUDI, ...NO_HOSTS }, ['dl1.24xlarge', 96, 48, 768, 13.109_04]],
  ['inf', {}, ['inf1.xlarge', 4, 2, 8, 0.228], ['inf2.xlarge', 4, 2, 16, 0.7582]],
  ['trn', {}, ['trn1.2xlarge', 8, 4, 32, 1.3438]],
  ['x', {}, ['x1e.xlarge', 4, 2, 122, 0.834], ['x2idn.16xlarge', 64, 32, 1024, 6.669]],
  ['x', ARM, ['x2gd.medium', 1, 1, 16, 0.0835]],
  ['high-memory', { ...METAL, ...NO_SPOT }, ['u-6tb1.metal', 448, 224, 6144, 46.403_913]],
  [
    'high-memory',
    NO_SPOT,
    ['u7i-12tb.224xlarge', 896, 448, 12_288, 152.88],
    ['u7in-16tb.224xlarge', 896, 448, 16_384, 203.84],
  ],
  ['hpc', { ...NO_SPOT, ...NO_HOSTS }, ['hpc6a.48xlarge', 96, 96, 384, 2.88]],
  ['hpc', { ...ARM, ...NO_SPOT, ...NO_HOSTS }, ['hpc7g.4xlarge', 16, 16, 128, 1.6832]],
  ['hosts', { ...METAL, ...NO_SPOT, architecture: 'x86_64_mac' }, ['mac1.metal', 12, 6, 32, 1.083]],
  [
    'hosts',
    { ...METAL, ...NO_SPOT, architecture: 'arm64_mac' },
    ['mac2.metal', 8, 8, 16, 0.65],
    ['mac2-m2.metal', 8, 8, 24, 0.878],
  ],
];

export const INSTANCE_TYPES: ReadonlyMap<string, InstanceType> = new Map(
  TYPES.flatMap(([quotaClass, common, ...rows]) => rows.map((row) => typeOf(quotaClass, common, row))).map((type) => [
    type.name,
    type,
  ]),
);

function typeOf(quotaClass: QuotaClass, common: Common, [name, vcpus, cores, memoryGib, price]: Row): InstanceType {
  return {
    ...{ name, quotaClass, vcpus, cores, memoryGib, price },
    family: name.split('.')[0] ?? '',
    architecture: 'x86_64',
    spot: true,
    bareMetal: false,
    dedicatedHosts: true,
    perHost: 16,
    burstable: false,
    gpu: undefined,
    ebsOptimizedIsOptional: false,
    ...common,
  };
}

/** Returns the description of a type as EC2 gives it. */
export function describeType(type: InstanceType): InstanceTypeInfo {
  const { vcpus, cores, gpu, architecture } = type;
  const threads = vcpus / cores;
  return {
    InstanceType: type.name as NonNullable<InstanceTypeInfo['InstanceType']>,
    CurrentGeneration: !/^(?:t2|m3|a1)\./.test(type.name),
    FreeTierEligible: type.name === 't3.micro',
    SupportedUsageClasses: type.spot ? ['on-demand', 'spot'] : ['on-demand'],
    SupportedRootDeviceTypes: ['ebs'],
    SupportedVirtualizationTypes: ['hvm'],
    BareMetal: type.bareMetal,
    ...(type.bareMetal ? {} : { Hypervisor: type.ebsOptimizedIsOptional ? 'xen' : 'nitro' }),
    ProcessorInfo: { SupportedArchitectures: [architecture], SustainedClockSpeedInGhz: 3.1 },
    VCpuInfo: { DefaultVCpus: vcpus, DefaultCores: cores, DefaultThreadsPerCore: threads },
    MemoryInfo: { SizeInMiB: type.memoryGib * 1024 },
    InstanceStorageSupported: false,
    EbsInfo: {
      EbsOptimizedSupport: type.ebsOptimizedIsOptional ? 'supported' : 'default',
      EncryptionSupport: 'supported',
      NvmeSupport: type.ebsOptimizedIsOptional ? 'unsupported' : 'required',
    },
    NetworkInfo: {
      ...{ NetworkPerformance: 'Up to 10 Gigabit', MaximumNetworkInterfaces: 4, MaximumNetworkCards: 1 },
      ...{ Ipv4AddressesPerInterface: 15, Ipv6AddressesPerInterface: 15, Ipv6Supported: true },
      EnaSupport: needsEna(type) ? 'required' : 'unsupported',
    },
    ...(gpu === undefined ? {} : { GpuInfo: gpuOf(gpu) }),
    PlacementGroupInfo: { SupportedStrategies: ['partition', 'spread'] },
    HibernationSupported: false,
    BurstablePerformanceSupported: type.burstable,
    DedicatedHostsSupported: type.dedicatedHosts,
    AutoRecoverySupported: !type.bareMetal,
    SupportedBootModes: architecture === 'arm64' ? ['uefi'] : ['legacy-bios', 'uefi'],
  };
}

function gpuOf({ name, manufacturer, count, gib }: NonNullable<InstanceType['gpu']>): InstanceTypeInfo['GpuInfo'] {
  const SizeInMiB = gib * 1024;
  return {
    Gpus: [{ Name: name, Manufacturer: manufacturer, Count: count, MemoryInfo: { SizeInMiB } }],
    TotalGpuMemoryInMiB: count * SizeInMiB,
  };
}

/** Types of the hypervisor Nitro cannot start images without support for enhanced networking. */
export function needsEna({ name, ebsOptimizedIsOptional }: InstanceType): boolean {
  return !ebsOptimizedIsOptional && !name.startsWith('t2.');
}
