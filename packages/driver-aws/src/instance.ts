/** Converts instances and dedicated hosts of EC2 to instances of core. */

import type { Host, Instance as Ec2Instance } from '@aws-sdk/client-ec2';
import type { Instance } from '@nodepool/core';
import { tagsOf, tagsOfHost } from './identity.js';
import { resourcesOf } from './quota.js';
import type { ProviderSession } from './session.js';

/** Codes of instances that AWS has taken away. Source: `StateReason` in the reference of the EC2 API. */
const RECLAIMED: ReadonlySet<string> = new Set(['Server.SpotInstanceTermination', 'Server.SpotInstanceShutdown']);
/** A node that shuts down is of no use; unless it is a spot instance, EC2 stops its instance instead of ending it. */
const FAILED_STATES: ReadonlySet<string> = new Set(['shutting-down', 'terminated', 'stopping', 'stopped']);
const STOPPED = 'stopped: ';

export function instanceOf(data: Ec2Instance, session: ProviderSession): Instance {
  const { InstanceId = '', InstanceType = '', State, Placement, NetworkInterfaces = [] } = data;
  const { config, types, interruptions } = session;
  const tags = tagsOf(data);
  const state = State?.Name ?? '';
  const endsAt = interruptions.endOf(InstanceId);
  const isReclaimed = endsAt !== undefined || RECLAIMED.has(data.StateReason?.Code ?? '');
  const isSpot = data.InstanceLifecycle === 'spot';
  const publicIpv6 = NetworkInterfaces.flatMap(({ Ipv6Addresses = [] }) => Ipv6Addresses)[0]?.Ipv6Address;
  const { PublicIpAddress: publicIpv4, PrivateIpAddress: privateIpv4 } = data;
  const usable = publicIpv4 !== '' ? publicIpv4 : undefined;
  return {
    externalId: InstanceId,
    hostname: tags['Name'],
    ready: state === 'running' && !isReclaimed,
    deleted: state === 'terminated',
    failed: isReclaimed ? 'Server.SpotInstanceTermination: AWS takes the spot instance away' : failureIn(data),
    reclaimed: isReclaimed ? { endsAt } : undefined,
    tags,
    cloud: 'AWS',
    region: config.region,
    az: Placement?.AvailabilityZone,
    hostId: Placement?.Tenancy === 'host' ? Placement.HostId : undefined,
    publicIpv4: usable,
    privateIpv4,
    publicIpv6,
    interfaceIp: isInternal(tags, session) ? privateIpv4 : (usable ?? publicIpv6 ?? privateIpv4),
    machine: InstanceType === '' ? undefined : { type: InstanceType, market: isSpot ? 'spot' : 'on-demand' },
    resources: resourcesOf(types.known(InstanceType), {
      instanceType: InstanceType,
      market: isSpot ? 'spot' : 'on-demand',
      onHost: Placement?.Tenancy === 'host',
      isStopped: state === 'stopped',
    }),
  };
}

/** Returns true if an instance has failed because it was stopped, so that it does not end by itself. */
export function isStopped({ failed = '' }: Pick<Instance, 'failed'>): boolean {
  return failed.startsWith(STOPPED);
}

/**
 * Converts a dedicated host, so that a launch sees when it is available, and that the deletion of its node finds it. It
 * uses no quota of instances.
 */
export function instanceOfHost(host: Host, region: string): Instance {
  const { HostId = '', State, AvailabilityZone } = host;
  return {
    externalId: HostId,
    ready: State === 'available',
    deleted: State === 'released' || State === 'released-permanent-failure',
    tags: tagsOfHost(host),
    cloud: 'AWS',
    region,
    az: AvailabilityZone,
    resources: {},
  };
}

export function isHostId(id: unknown): id is string {
  return typeof id === 'string' && id.startsWith('h-');
}

/** Returns the reason why an instance never becomes ready. It begins with AWS's code if the instance ends. */
function failureIn({ State, StateReason }: Ec2Instance): string | undefined {
  const state = State?.Name ?? '';
  const { Code, Message = state } = StateReason ?? {};
  if (!FAILED_STATES.has(state)) return undefined;
  const reason = Code === undefined || Message.startsWith(Code) ? Message : `${Code}: ${Message}`;
  return state.startsWith('stop') ? STOPPED + reason : reason;
}

function isInternal(tags: Readonly<Record<string, string>>, { config }: ProviderSession): boolean {
  const labels = config.pools.get(tags['nodepool_pool_name'] ?? '')?.labels.values() ?? [];
  for (const { network } of labels) return network.useInternalIp;
  return false;
}
