/** The life of instances: states in their order, what ends with them, and interruptions of spot instances. */

import type { InstanceState } from '../api.js';
import type { Region } from '../region.js';
import { ACCOUNT } from '../settings.js';
import { removeInterface } from './interfaces.js';
import { stateAt, type Instance } from './records.js';

export const TERMINATED_BY_USER = {
  code: 'Client.UserInitiatedShutdown',
  message: 'Client.UserInitiatedShutdown: User initiated shutdown',
};
export const TERMINATED_BY_SPOT = {
  code: 'Server.SpotInstanceTermination',
  message: 'Server.SpotInstanceTermination: Spot instance termination',
};

/** Starts the life of a launched instance; with `failure`, it ends instead of running. */
export function begin(region: Region, instance: Instance, failure: Instance['stateReason']): void {
  enter(region, instance, 'pending', region.now);
  const { pendingMs, addressMs } = region.settings;
  const endsAt = region.now + pendingMs;
  instance.addressAt = failure === undefined ? endsAt + addressMs : Infinity;
  region.world.timeline.at(endsAt, (at) => {
    if (currentState(instance) !== 'pending') return;
    if (failure === undefined) enter(region, instance, 'running', at);
    else terminate(region, instance, at, failure, '');
  });
}

export function currentState({ history }: Instance): InstanceState {
  return history.at(-1)?.state ?? 'pending';
}

function enter(region: Region, instance: Instance, state: InstanceState, at: number): void {
  instance.history.push({ at, state });
  region.world.publish(region.name, {
    type: 'EC2 Instance State-change Notification',
    resources: [region.arn('ec2', `instance/${instance.id}`, ACCOUNT)],
    detail: { 'instance-id': instance.id, state },
    at,
  });
}

/** Terminates an instance; no effect if it ends already. */
export function terminate(
  region: Region,
  instance: Instance,
  at: number,
  reason: NonNullable<Instance['stateReason']>,
  transition = `User initiated (${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} GMT)`,
): void {
  const state = currentState(instance);
  if (state === 'shutting-down' || state === 'terminated') return;
  enter(region, instance, 'shutting-down', at);
  instance.stateReason = reason;
  instance.transition = transition;
  const request = region.spotRequests.get(instance.spotRequestId);
  if (request !== undefined) {
    request.state = 'closed';
    request.status = reason === TERMINATED_BY_SPOT ? 'instance-terminated-no-capacity' : 'instance-terminated-by-user';
  }
  region.world.timeline.at(at + region.settings.shuttingDownMs, (endedAt) => {
    enter(region, instance, 'terminated', endedAt);
    releaseParts(region, instance, endedAt);
    region.world.timeline.at(endedAt + region.settings.terminatedListedMs, (listedUntil) =>
      region.instances.remove(instance, listedUntil),
    );
  });
}

/** Deletes or detaches the volumes and interfaces of an instance. */
function releaseParts(region: Region, instance: Instance, at: number): void {
  for (const id of instance.volumeIds) {
    const volume = region.volumes.get(id);
    if (volume?.attachment?.instanceId !== instance.id) continue;
    if (volume.attachment.deleteOnTermination) region.volumes.remove(volume, at);
    else volume.attachment = undefined;
  }
  for (const id of instance.interfaceIds) {
    const nic = region.interfaces.get(id);
    if (nic?.attachment?.instanceId !== instance.id) continue;
    const address = region.addresses.all().find((one) => one.interfaceId === nic.id);
    if (nic.attachment.deleteOnTermination) {
      removeInterface(region, nic, at);
      if (address !== undefined) [address.interfaceId, address.associationId] = [undefined, undefined];
    } else {
      nic.attachment = undefined;
      if (address === undefined) nic.publicIp = undefined;
    }
  }
}

export function stop(
  region: Region,
  instance: Instance,
  at: number,
  reason: NonNullable<Instance['stateReason']>,
): void {
  const state = currentState(instance);
  if (state !== 'running' && state !== 'pending') return;
  enter(region, instance, 'stopping', at);
  instance.stateReason = reason;
  region.world.timeline.at(at + region.settings.shuttingDownMs, (stoppedAt) => {
    if (currentState(instance) === 'stopping') enter(region, instance, 'stopped', stoppedAt);
  });
}

export function start(region: Region, instance: Instance): void {
  instance.stateReason = undefined;
  begin(region, instance, undefined);
}

/** Sends the notice of an interruption, and terminates the instance after the time that it leaves. */
export function interrupt(region: Region, instance: Instance): void {
  const at = region.now;
  instance.interruptedAt = at;
  region.world.publish(region.name, {
    type: 'EC2 Spot Instance Interruption Warning',
    resources: [region.arn('ec2', `instance/${instance.id}`, ACCOUNT)],
    detail: { 'instance-id': instance.id, 'instance-action': 'terminate' },
    at,
  });
  const request = region.spotRequests.get(instance.spotRequestId);
  if (request !== undefined) request.status = 'marked-for-termination';
  region.world.timeline.at(at + region.settings.spotNoticeMs, (endsAt) =>
    terminate(region, instance, endsAt, TERMINATED_BY_SPOT, 'Server.SpotInstanceTermination'),
  );
}

export function recommendRebalance(region: Region, instance: Instance): void {
  region.world.publish(region.name, {
    type: 'EC2 Instance Rebalance Recommendation',
    resources: [region.arn('ec2', `instance/${instance.id}`, ACCOUNT)],
    detail: { 'instance-id': instance.id },
    at: region.now,
  });
}

/** Returns true if a call sees the instance as ended or ending. */
export function isEnding(instance: Instance, asOf: number): boolean {
  const state = stateAt(instance, asOf);
  return state === 'shutting-down' || state === 'terminated';
}
