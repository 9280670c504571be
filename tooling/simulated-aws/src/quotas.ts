/** Service quotas, with Amazon's codes and names, and what counts against them. */

import { INSTANCE_TYPES, type QuotaClass } from './ec2/instance-types.js';
import type { Market } from './api.js';
import { AwsError } from './protocol/aws-error.js';

export interface Quota {
  readonly service: 'ec2' | 'ebs';
  readonly code: string;
  readonly name: string;
  readonly value: number;
}

/** Codes of the on-demand and spot quotas in vCPUs, with the names of their families. */
const VCPU_QUOTAS: readonly (readonly [
  QuotaClass,
  onDemand: string,
  spot: string | undefined,
  families: string,
  spotFamilies?: string,
])[] = [
  ['standard', 'L-1216C47A', 'L-34B43A08', 'Standard (A, C, D, H, I, M, R, T, Z)'],
  ['dl', 'L-6E869C2A', 'L-85EED4F7', 'DL'],
  ['f', 'L-74FC7D96', 'L-88CF9481', 'F'],
  ['g', 'L-DB2E81BA', 'L-3819A6DF', 'G and VT'],
  ['high-memory', 'L-43DA4232', undefined, 'High Memory'],
  ['inf', 'L-1945791B', 'L-B5D1601B', 'Inf'],
  ['p', 'L-417A185B', 'L-7212CCBC', 'P', 'P4, P3 and P2'],
  ['x', 'L-7295265B', 'L-E3A00192', 'X'],
  ['trn', 'L-2C3B7624', 'L-6B0D517C', 'Trn'],
  ['hpc', 'L-F7808C92', undefined, 'HPC'],
];

const HOST_QUOTAS: Readonly<Record<string, string>> = {
  c5: 'L-81657574',
  f1: 'L-5C4CD236',
  g4dn: 'L-CAE24619',
  g5: 'L-A6E7FE5E',
  gr6: 'L-E68C3AFF',
  h1: 'L-84391ECC',
  i3: 'L-8E60B0B1',
  im4gn: 'L-93155D6F',
  is4gen: 'L-CB4F5825',
  m3: 'L-3C82F907',
  m5: 'L-8B7BF662',
  m6a: 'L-80F2B67F',
  m6g: 'L-D50A37FA',
  m6i: 'L-D269BEFD',
  m7a: 'L-4740F819',
  m7g: 'L-9126620E',
  m7i: 'L-30E31217',
  mac1: 'L-A8448DC5',
  mac2: 'L-5D8DADF5',
  'mac2-m2': 'L-B90B5B66',
  p3: 'L-A0A19F79',
  p4d: 'L-86A789C3',
  r5: 'L-EA4FD6CF',
  r6g: 'L-B6D6065D',
  r6i: 'L-F13A970A',
  t3: 'L-1586174D',
  trn1: 'L-5E4FB836',
  'u-6tb1': 'L-89870E8E',
  x2idn: 'L-A84ABF80',
  z1d: 'L-F035E935',
};

/** Quotas of volumes by type: storage in TiB and, for some, provisioned IOPS. */
const VOLUME_QUOTAS: readonly (readonly [type: string, storage: string, name: string, tib: number, iops?: string])[] = [
  ['gp2', 'L-D18FCD1D', 'General Purpose SSD (gp2)', 300],
  ['gp3', 'L-7A658B76', 'General Purpose SSD (gp3)', 300],
  ['io1', 'L-FD252861', 'Provisioned IOPS SSD (io1)', 300, 'L-B3A130E6'],
  ['io2', 'L-09BD8365', 'Provisioned IOPS SSD (io2)', 20, 'L-8D977E7E'],
  ['sc1', 'L-17AF77E8', 'Cold HDD (sc1)', 300],
  ['st1', 'L-82ACEF56', 'Throughput Optimized HDD (st1)', 300],
  ['standard', 'L-9CF3C2EB', 'Magnetic (standard)', 300],
];

export const ADDRESS_QUOTA = 'L-0263D0A3';

const DEFAULTS: readonly Quota[] = [
  ...VCPU_QUOTAS.flatMap(([, onDemand, spot, families, spotFamilies = families]): Quota[] => [
    { service: 'ec2', code: onDemand, name: `Running On-Demand ${families} instances`, value: 1152 },
    ...(spot === undefined
      ? []
      : [{ service: 'ec2' as const, code: spot, name: `All ${spotFamilies} Spot Instance Requests`, value: 1440 }]),
  ]),
  ...Object.entries(HOST_QUOTAS).map(([family, code]): Quota => ({
    service: 'ec2',
    code,
    name: `Running Dedicated ${family} Hosts`,
    value: 2,
  })),
  { service: 'ec2', code: ADDRESS_QUOTA, name: 'EC2-VPC Elastic IPs', value: 5 },
  ...VOLUME_QUOTAS.flatMap(([, storage, name, tib, iops]): Quota[] => [
    { service: 'ebs', code: storage, name: `Storage for ${name} volumes, in TiB`, value: tib },
    ...(iops === undefined
      ? []
      : [{ service: 'ebs' as const, code: iops, name: `IOPS for ${name} volumes`, value: 300_000 }]),
  ]),
];

/** The quotas of a region. */
export class Quotas {
  private readonly values = new Map<string, number>();

  list(service: string): readonly Quota[] {
    return DEFAULTS.filter((quota) => quota.service === service).map((quota) => ({
      ...quota,
      value: this.values.get(quota.code) ?? quota.value,
    }));
  }

  defaults(service: string): readonly Quota[] {
    return DEFAULTS.filter((quota) => quota.service === service);
  }

  value(code: string): number {
    return this.values.get(code) ?? DEFAULTS.find((quota) => quota.code === code)?.value ?? Infinity;
  }

  /** Throws if there is no such quota. */
  set(code: string, value: number): void {
    if (!DEFAULTS.some((quota) => quota.code === code)) throw new Error(`there is no quota ${code}`);
    this.values.set(code, value);
  }
}

/** Returns the code of the quota of vCPUs for a type; undefined if none applies. */
export function vcpuQuota(instanceType: string, market: Market): string | undefined {
  const quotaClass = INSTANCE_TYPES.get(instanceType)?.quotaClass;
  const quota = VCPU_QUOTAS.find(([name]) => name === quotaClass);
  return market === 'spot' ? quota?.[2] : quota?.[1];
}

export function hostQuota(family: string): string | undefined {
  return HOST_QUOTAS[family];
}

/** Returns the codes of the quotas of storage and IOPS for a type of volume. */
export function volumeQuotas(type: string): { readonly storage: string; readonly iops: string | undefined } {
  const quota = VOLUME_QUOTAS.find(([name]) => name === type);
  if (quota === undefined)
    throw new AwsError('UnknownVolumeType', `Unsupported volume type '${type}' for volume creation.`);
  return { storage: quota[1], iops: quota[4] };
}
