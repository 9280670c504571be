/**
 * Resources that AWS limits by the codes of Service Quotas: vCPUs by family and market, volumes, and dedicated hosts.
 *
 * Source: "Amazon EC2 service quotas" and "Amazon EBS quotas" of AWS's documentation.
 */

import type { Resources } from '@nodepool/core';
import type { TypeSize } from './instance-types.js';
import type { Choice, Market } from './offers.js';

/** Codes of the vCPU quotas of families of types. */
type Codes = Readonly<Record<Market, string | undefined>>;

const STANDARD: Codes = { 'on-demand': 'L-1216C47A', spot: 'L-34B43A08' };
const HIGH_MEMORY: Codes = { 'on-demand': 'L-43DA4232', spot: undefined };
const GRAPHICS: Codes = { 'on-demand': 'L-DB2E81BA', spot: 'L-3819A6DF' };

/** By the letters with which a type begins. */
const FAMILIES: Readonly<Record<string, Codes>> = {
  ...Object.fromEntries(['a', 'c', 'd', 'h', 'i', 'm', 'r', 't', 'z'].map((letter) => [letter, STANDARD])),
  im: STANDARD,
  is: STANDARD,
  dl: { 'on-demand': 'L-6E869C2A', spot: 'L-85EED4F7' },
  f: { 'on-demand': 'L-74FC7D96', spot: 'L-88CF9481' },
  g: GRAPHICS,
  gr: GRAPHICS,
  vt: GRAPHICS,
  u: HIGH_MEMORY,
  inf: { 'on-demand': 'L-1945791B', spot: 'L-B5D1601B' },
  p: { 'on-demand': 'L-417A185B', spot: 'L-7212CCBC' },
  x: { 'on-demand': 'L-7295265B', spot: 'L-E3A00192' },
  trn: { 'on-demand': 'L-2C3B7624', spot: 'L-6B0D517C' },
  hpc: { 'on-demand': 'L-F7808C92', spot: undefined },
  // They run on dedicated hosts only, which have quotas of their own.
  mac: { 'on-demand': undefined, spot: undefined },
};

interface VolumeCodes {
  readonly storage: string;
  readonly iops?: string;
}

/** Codes of the quotas of volumes by their type. AWS counts storage in TiB, this driver in GiB. */
export const VOLUME_CODES: Readonly<Record<string, VolumeCodes>> = {
  io1: { storage: 'L-FD252861', iops: 'L-B3A130E6' },
  io2: { storage: 'L-09BD8365', iops: 'L-8D977E7E' },
  sc1: { storage: 'L-17AF77E8' },
  gp2: { storage: 'L-D18FCD1D' },
  gp3: { storage: 'L-7A658B76' },
  standard: { storage: 'L-9CF3C2EB' },
  st1: { storage: 'L-82ACEF56' },
};

/** Codes of quotas whose values are in TiB. */
export const STORAGE_CODES: ReadonlySet<string> = new Set(Object.values(VOLUME_CODES).map(({ storage }) => storage));

export const IOPS_CODES: ReadonlySet<string> = new Set(
  Object.values(VOLUME_CODES).flatMap(({ iops }) => (iops === undefined ? [] : [iops])),
);

/** All codes of vCPU quotas. */
export const VCPU_CODES: ReadonlySet<string> = new Set(
  Object.values(FAMILIES).flatMap((codes) => Object.values(codes).filter((code): code is string => code !== undefined)),
);

/** Returns the name of a family of types, e.g. `m7i` for `m7i.large`. */
export function familyOf(instanceType: string): string {
  return instanceType.split('.')[0] ?? '';
}

function lettersOf(instanceType: string): string {
  return /^[a-z]+/.exec(instanceType)?.[0] ?? '';
}

/** Returns true if the table has the letters of the type. */
export function isKnownFamily(instanceType: string): boolean {
  return lettersOf(instanceType) in FAMILIES;
}

/** Returns the code of a type's vCPU quota. A type with unknown letters counts as one of the standard families. */
export function vcpuCodeOf({ instanceType, market }: Choice): string | undefined {
  return (FAMILIES[lettersOf(instanceType)] ?? STANDARD)[market];
}

/** Returns the resource that counts hosts of a type; `quota-limits.ts` finds its quota by name. */
export function hostResource(instanceType: string): string {
  return `hosts-${familyOf(instanceType)}`;
}

/**
 * Returns the resources of an instance. If its size is unknown, that is one instance. A stopped instance does not count
 * against the quotas of vCPUs, which are those of running instances.
 */
export function resourcesOf(
  size: TypeSize | undefined,
  {
    instanceType,
    market,
    onHost,
    isStopped = false,
  }: Choice & { readonly onHost: boolean; readonly isStopped?: boolean },
): Resources {
  if (size === undefined) return { instances: 1 };
  const base = { instances: 1, cores: size.cores, ram: size.ram };
  if (onHost) return { ...base, [hostResource(instanceType)]: 1 };
  const code = vcpuCodeOf({ instanceType, market });
  return code === undefined || isStopped ? base : { ...base, [code]: size.vcpus };
}

/** Returns the resources of a volume. */
export function volumeResources(volume: {
  readonly type: string | undefined;
  readonly size: number | undefined;
  readonly iops: number | undefined;
}): Resources {
  const codes = VOLUME_CODES[volume.type ?? ''];
  if (codes === undefined) return {};
  return {
    ...(volume.size === undefined ? {} : { [codes.storage]: volume.size }),
    ...(codes.iops === undefined || volume.iops === undefined ? {} : { [codes.iops]: volume.iops }),
  };
}
