/** Builds creation requests and interprets instances of the API. */

import { createHash } from 'node:crypto';
import type { CreateRequest, ExternalId, Instance, JsonObject } from '@nodepool/core';
import { numberAt, objectAt, stringAt } from '@nodepool/core';
import { labelsOf, linkAt, listAt } from './client/answers.js';
import type { InstanceBody } from './client/compute.js';
import type { Accelerator, GceLabel } from './config.js';
import { isCopy, OWN_NAME, tagsInLabels, tagsToLabels } from './labels.js';
import { needOf, type MachineSize } from './quota.js';

/** Maximum length of an instance name in characters. */
const NAME_MAX_LENGTH = 63;
const SUFFIX_LENGTH = 9;

/** Zone and name of an instance, as encoded in its external id. */
export interface InstancePlace {
  readonly zone: string;
  readonly name: string;
}

/**
 * Returns the name of an instance in its provider's zone, which the Python Nodepool also writes and can delete. In
 * another zone, the zone precedes it, e.g. `us-central1-a/np0000000001-5f2c8a1b`.
 */
export function externalIdOf({ zone, name }: InstancePlace, providerZone: string): string {
  return zone === providerZone ? name : `${zone}/${name}`;
}

/** Returns true if the external id contains the zone. */
export function hasZone(externalId: ExternalId): boolean {
  return typeof externalId === 'string' && externalId.includes('/');
}

/** Returns the place that an external id refers to. Ids without a zone are in `zone`, the provider's zone. */
export function placeOf(externalId: ExternalId, zone: string): InstancePlace {
  const text = typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
  const slash = text.indexOf('/');
  return slash < 0 ? { zone, name: text } : { zone: text.slice(0, slash), name: text.slice(slash + 1) };
}

/** Returns an instance name, unique per launch attempt, because the previous attempt's instance may still exist. */
export function instanceName(hostname: string, attempt: string): string {
  const cleaned = hostname.toLowerCase().replace(/[^a-z0-9-]/g, '-');
  const host = /^[a-z]/.test(cleaned) ? cleaned : `np-${cleaned}`;
  return `${host.slice(0, NAME_MAX_LENGTH - SUFFIX_LENGTH)}${suffixOf(attempt)}`;
}

/** Returns true if the instance name can be that of the launch attempt. */
export function isNameOf(attempt: string, name: string): boolean {
  return name.endsWith(suffixOf(attempt));
}

function suffixOf(attempt: string): string {
  const hash = createHash('sha256').update(attempt).digest('hex');
  return `-${hash.slice(0, SUFFIX_LENGTH - 1)}`;
}

/** Returns a deterministic UUID for a purpose. Repeated calls with the same UUID take effect once. */
export function requestId(...purpose: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(purpose)).digest('hex');
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-5${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

export function instanceBody(
  { zone, name }: InstancePlace,
  request: CreateRequest<GceLabel>,
  image: string,
): InstanceBody {
  const { label, machineType = label.instanceType } = request;
  const tags = { ...request.tags, [OWN_NAME]: name };
  const labels = { ...label.instanceLabels, ...tagsToLabels(tags) };
  const { key, connection } = label;
  return {
    name,
    machineType: `zones/${zone}/machineTypes/${machineType}`,
    labels,
    disks: [
      {
        boot: true,
        autoDelete: true,
        initializeParams: {
          sourceImage: image,
          diskType: `zones/${zone}/diskTypes/${label.volumeType}`,
          diskSizeGb: String(label.volumeSize),
          labels,
        },
      },
    ],
    networkInterfaces: [
      {
        ...(label.network === undefined ? {} : { network: label.network }),
        ...(label.subnetwork === undefined ? {} : { subnetwork: label.subnetwork }),
        ...(label.publicIpv4 ? { accessConfigs: [{ type: 'ONE_TO_ONE_NAT', name: 'External NAT' }] } : {}),
      },
    ],
    metadata: {
      items: [
        ...(key === undefined ? [] : [{ key: 'ssh-keys', value: `${connection.username ?? 'zuul'}:${key}` }]),
        ...Object.entries(tags).map(([tag, value]) => ({ key: tag, value })),
      ],
    },
    serviceAccounts:
      label.serviceAccount === undefined
        ? []
        : [{ email: label.serviceAccount, scopes: ['https://www.googleapis.com/auth/cloud-platform'] }],
    scheduling: schedulingOf(label, machineType),
    ...(label.accelerators.length === 0 ? {} : { guestAccelerators: acceleratorsIn(zone, label) }),
  };
}

/**
 * Machine types that cannot migrate: those with built-in accelerators and bare metal
 * (https://cloud.google.com/compute/docs/instances/live-migration-process#limitations).
 */
const WITHOUT_MIGRATION = /^(a2|a3|a4x?|g2|g4|ct\d\w*|tpu\w*)-|-metal$/;

function schedulingOf(
  { provisioning, accelerators }: GceLabel,
  machineType: string,
): NonNullable<InstanceBody['scheduling']> {
  const stays = accelerators.length > 0 || WITHOUT_MIGRATION.test(machineType);
  if (provisioning === 'standard') return stays ? { onHostMaintenance: 'TERMINATE' } : {};
  const endsEarly = { automaticRestart: false, onHostMaintenance: 'TERMINATE' } as const;
  return provisioning === 'preemptible'
    ? { preemptible: true, ...endsEarly }
    : { provisioningModel: 'SPOT', instanceTerminationAction: 'STOP', ...endsEarly };
}

function acceleratorsIn(zone: string, { accelerators }: GceLabel): NonNullable<InstanceBody['guestAccelerators']> {
  return accelerators.map(({ type, count }) => ({
    acceleratorType: `zones/${zone}/acceleratorTypes/${type}`,
    acceleratorCount: count,
  }));
}

/** States of instances that no longer run, because of a shutdown, a preemption or an operator. */
const STOPPED = new Set(['TERMINATED', 'STOPPED', 'SUSPENDED', 'SUSPENDING', 'STOPPING', 'PENDING_STOP']);

/** States of a preemptible instance that Compute Engine takes away. */
const PREEMPTED = new Set(['TERMINATED', 'STOPPED', 'STOPPING', 'PENDING_STOP']);

export interface InstanceFacts {
  readonly region: string;
  /** Zone of the provider. */
  readonly zone: string;
  readonly sizeOf: (machineType: string) => MachineSize | undefined;
  /** True if the region has a quota for preemptible cores. */
  readonly preemptibleQuota: boolean;
  /** Names of the pools whose nodes are reached at their internal addresses. */
  readonly internalPools: ReadonlySet<string>;
}

/** Converts a listed instance to an instance of core. A stopped instance still exists and must be deleted. */
export function instanceOf(
  data: JsonObject,
  { region, zone, sizeOf, preemptibleQuota, internalPools }: InstanceFacts,
): Instance {
  const place = placeIn(data);
  const status = stringAt(data, 'status') ?? '';
  const [network = {}] = listAt(data, 'networkInterfaces');
  const [access = {}] = listAt(network, 'accessConfigs');
  const [access6 = {}] = listAt(network, 'ipv6AccessConfigs');
  const privateIpv4 = stringAt(network, 'networkIP');
  const publicIpv4 = stringAt(access, 'natIP');
  const machineType = linkAt(data, 'machineType') ?? '';
  const tags = tagsOf(data);
  const isInternal = internalPools.has(tags['nodepool_pool_name'] ?? '');
  return {
    externalId: externalIdOf(place, zone),
    hostname: place.name,
    // A requested external address is assigned after the instance is running.
    ready:
      status === 'RUNNING' && privateIpv4 !== undefined && (!('accessConfigs' in network) || publicIpv4 !== undefined),
    deleted: false,
    failed: STOPPED.has(status) ? stoppedBecause(data, status) : undefined,
    // The API does not tell a preemption from a shutdown by the guest, and the nodes' requestors do not shut down.
    reclaimed: PREEMPTED.has(status) && isPreemptible(data) ? {} : undefined,
    tags,
    interfaceIp: isInternal ? (privateIpv4 ?? publicIpv4) : (publicIpv4 ?? privateIpv4),
    publicIpv4,
    privateIpv4,
    publicIpv6: stringAt(access6, 'externalIpv6'),
    cloud: 'Google',
    region,
    az: place.zone,
    hostId: stringAt(objectAt(data, 'resourceStatus') ?? {}, 'physicalHost'),
    machine: machineType === '' ? undefined : { type: machineType, market: isPreemptible(data) ? 'spot' : 'on-demand' },
    resources: needOf(
      { machineType, preemptible: preemptibleQuota && isPreemptible(data), accelerators: acceleratorsOf(data) },
      sizeOf(machineType),
    ).toResources(),
  };
}

export function placeIn(data: JsonObject): InstancePlace {
  return { zone: linkAt(data, 'zone') ?? '', name: stringAt(data, 'name') ?? '' };
}

/** Returns the tags of a listed instance; none of a copy. The Python Nodepool writes them only as metadata. */
export function tagsOf(data: JsonObject): Readonly<Record<string, string>> {
  const tags = { ...tagsInMetadata(data), ...tagsInLabels(labelsOf(data)) };
  return isCopy(tags, stringAt(data, 'name') ?? '') ? {} : tags;
}

function isPreemptible(data: JsonObject): boolean {
  const { preemptible, provisioningModel } = objectAt(data, 'scheduling') ?? {};
  return preemptible === true || provisioningModel === 'SPOT';
}

function acceleratorsOf(data: JsonObject): readonly Accelerator[] {
  return listAt(data, 'guestAccelerators').map((each) => ({
    type: linkAt(each, 'acceleratorType') ?? '',
    count: numberAt(each, 'acceleratorCount') ?? 1,
  }));
}

function tagsInMetadata(data: JsonObject): Readonly<Record<string, string>> {
  const items = listAt(objectAt(data, 'metadata') ?? {}, 'items');
  const entries = items.map((item) => [stringAt(item, 'key') ?? '', stringAt(item, 'value') ?? ''] as const);
  return Object.fromEntries(entries.filter(([key]) => key.startsWith('nodepool_')));
}

function stoppedBecause(data: JsonObject, status: string): string {
  const said = stringAt(data, 'statusMessage');
  return `it is ${status}${isPreemptible(data) ? ' (preemptible)' : ''}${said === undefined ? '' : `: ${said}`}`;
}
