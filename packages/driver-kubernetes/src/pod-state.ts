/** Interprets the status of a pod: running, on its way, or failed with a typed error. */

import {
  CapacityError,
  ConfigurationError,
  InstanceFailedError,
  RefusedError,
  objectAt,
  stringAt,
  type DriverError,
  type JsonObject,
} from '@nodepool/core';
import { listAt, type KubernetesObject } from './client/objects.js';

/** Maximum length of a cluster's text in messages (characters). */
const MAX_TEXT = 500;

/** Why a pod does not run. */
export type PodFailure =
  /** The pod has ended, e.g. evicted. */
  | 'ended'
  /** The node of the cluster had too few free resources for it when it arrived there. */
  | 'rejected'
  /** Its image cannot be pulled at the moment, or a secret that it uses cannot be read; the kubelet tries again. */
  | 'refused'
  /** Its container cannot be created at the moment; the kubelet tries again. */
  | 'creation'
  /** The label cannot work, e.g. because of an invalid image name. */
  | 'configuration'
  /** Its container fails as soon as it is started. */
  | 'crash'
  /** No node of the cluster has enough free resources for it. */
  | 'unschedulable';

export type PodState =
  | { readonly state: 'running' }
  | { readonly state: 'pending' }
  | { readonly state: 'failing'; readonly failure: PodFailure; readonly reason: string; readonly message: string };

/** Failures by the reason of a waiting container (kubelet). */
const WAITING: Readonly<Record<string, PodFailure>> = {
  ErrImagePull: 'refused',
  ImagePullBackOff: 'refused',
  RegistryUnavailable: 'refused',
  ErrImageNeverPull: 'configuration',
  InvalidImageName: 'configuration',
  ImageInspectError: 'refused',
  CreateContainerConfigError: 'refused',
  CreateContainerError: 'creation',
  RunContainerError: 'creation',
  CrashLoopBackOff: 'crash',
};

/** Reasons with which a kubelet rejects a pod, e.g. `OutOfcpu`. */
const OUT_OF_RESOURCES = /^OutOf/;

/** Returns true if all containers of the pod have ended and are not restarted. */
export function hasEnded({ data }: Pick<KubernetesObject, 'data'>): boolean {
  const phase = stringAt(objectAt(data, 'status') ?? {}, 'phase');
  return phase === 'Failed' || phase === 'Succeeded';
}

export function podStateOf({ data, isBeingDeleted }: KubernetesObject): PodState {
  const status = objectAt(data, 'status') ?? {};
  const phase = stringAt(status, 'phase');
  if (hasEnded({ data }) || isBeingDeleted) {
    const reason = stringAt(status, 'reason') ?? (isBeingDeleted ? 'Deleted' : endOf(status));
    const message =
      stringAt(status, 'message') ?? `the pod is ${isBeingDeleted ? 'being deleted' : 'no longer running'}`;
    const failure = OUT_OF_RESOURCES.test(reason) ? 'rejected' : 'ended';
    return { state: 'failing', failure, reason, message };
  }
  const containers = [...listAt(status, 'initContainerStatuses'), ...listAt(status, 'containerStatuses')];
  for (const container of containers) {
    const waiting = objectAt(objectAt(container, 'state') ?? {}, 'waiting') ?? {};
    const reason = stringAt(waiting, 'reason') ?? '';
    const failure = WAITING[reason];
    if (failure === undefined) continue;
    return { state: 'failing', failure, reason, message: stringAt(waiting, 'message') ?? '' };
  }
  if (phase === 'Running') return { state: 'running' };
  const scheduled = listAt(status, 'conditions').find((condition) => stringAt(condition, 'type') === 'PodScheduled');
  if (scheduled !== undefined && stringAt(scheduled, 'status') === 'False') {
    const reason = stringAt(scheduled, 'reason') ?? 'Unschedulable';
    return { state: 'failing', failure: 'unschedulable', reason, message: stringAt(scheduled, 'message') ?? '' };
  }
  return { state: 'pending' };
}

/** Returns the reason with which a container has ended, e.g. `OOMKilled`. */
function endOf(status: JsonObject): string {
  for (const container of listAt(status, 'containerStatuses')) {
    const terminated = objectAt(objectAt(container, 'state') ?? {}, 'terminated');
    const reason = terminated === undefined ? undefined : stringAt(terminated, 'reason');
    if (reason !== undefined) return reason;
  }
  return 'Failed';
}

/** Reasons of pods that the cluster has ended. Sources: kubelet, scheduler and node controller. */
const DISRUPTIONS: ReadonlySet<string> = new Set([
  ...['Evicted', 'Preempting', 'NodeLost', 'NodeShutdown', 'Shutdown', 'Terminated', 'TerminationByKubelet'],
]);

/**
 * Returns the time, in milliseconds since the epoch, at which the cluster ends a pod that it takes away, e.g. by an
 * eviction or a preemption; `endsAt` is absent if the time is not known. Returns undefined for other pods.
 */
export function disruptionOf({ data }: Pick<KubernetesObject, 'data'>): { readonly endsAt?: number } | undefined {
  const status = objectAt(data, 'status') ?? {};
  const isTarget = listAt(status, 'conditions').some(
    (each) => stringAt(each, 'type') === 'DisruptionTarget' && stringAt(each, 'status') === 'True',
  );
  if (!isTarget && !DISRUPTIONS.has(stringAt(status, 'reason') ?? '')) return undefined;
  const endsAt = Date.parse(stringAt(objectAt(data, 'metadata') ?? {}, 'deletionTimestamp') ?? '');
  return Number.isNaN(endsAt) ? {} : { endsAt };
}

/** Name of the cluster's node that runs the pod. */
export function nodeNameOf({ data }: KubernetesObject): string | undefined {
  return stringAt(objectAt(data, 'spec') ?? {}, 'nodeName');
}

/** Returns the most informative warning among the events of a pod, e.g. why its image cannot be pulled. */
export function warningIn(events: readonly KubernetesObject[]): { reason: string; message: string } | undefined {
  const warnings = events
    .map(({ data }) => data)
    .filter((event) => stringAt(event, 'type') === 'Warning')
    .map((event) => ({
      reason: stringAt(event, 'reason') ?? '',
      message: stringAt(event, 'message') ?? '',
      at: stringAt(event, 'lastTimestamp') ?? stringAt(event, 'eventTime') ?? '',
    }))
    .sort((a, b) => b.at.localeCompare(a.at));
  // The kubelet repeats "Error: ImagePullBackOff" beside the event that has the registry's answer.
  return warnings.find(({ message }) => !/^(Error: |Back-off )/.test(message)) ?? warnings[0];
}

/** Returns the error of a pod that cannot run, with the reason in the cluster's words. */
export function failureError(
  pod: string,
  { failure, reason, message }: Extract<PodState, { state: 'failing' }>,
  event: { readonly reason: string; readonly message: string } | undefined,
): DriverError {
  const said = event === undefined || event.message === message ? '' : `; event ${event.reason}: ${event.message}`;
  const text = `pod ${pod}: ${reason}${message === '' ? '' : `: ${message}`}${said}`
    .replace(/\s+/g, ' ')
    .slice(0, MAX_TEXT);
  switch (failure) {
    case 'ended':
    case 'creation':
    case 'crash':
      return new InstanceFailedError(text);
    case 'configuration':
      return new ConfigurationError(text, { outcome: 'applied' });
    case 'refused':
      return new RefusedError(text, { outcome: 'applied' });
    case 'rejected':
    case 'unschedulable':
      return new CapacityError(text, { outcome: 'applied' });
  }
}
