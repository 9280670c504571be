/**
 * The statuses that a scheduler and a kubelet would write for a pod. A setting of the cluster or the name of the image
 * decides: `missing` cannot be pulled, `unreachable` comes from a registry that does not answer, `secret` waits for the
 * cache of a secret, `full` arrives at a full node, `huge` fits nowhere, `evicted` is evicted, `broken` crashes; all
 * others run.
 */

import { objectAt, stringAt, type JsonObject, type JsonValue } from '@nodepool/core';

/** Name of the cluster's only node. */
export const NODE_NAME = 'node-1';

/** A warning that the cluster reports as an event of the pod. */
export interface PodWarning {
  readonly reason: string;
  readonly message: string;
}

/** The next state of a pod. */
export interface PodOutcome {
  /** Undefined as long as the pod has no node. */
  readonly nodeName: string | undefined;
  readonly status: JsonObject;
  readonly warning: PodWarning | undefined;
}

const PULL_ERRORS: Readonly<Record<string, (image: string) => string>> = {
  missing: (image) =>
    `Failed to pull image "${image}": rpc error: code = NotFound desc = failed to pull and unpack image "${image}": not found`,
  unreachable: (image) =>
    `Failed to pull image "${image}": rpc error: code = Unknown desc = dial tcp 192.0.2.1:443: i/o timeout`,
};

const FAILURES = ['missing', 'unreachable', 'secret', 'full', 'huge', 'evicted', 'broken'] as const;
/** Why a pod does not run. */
export type PodFailureKind = (typeof FAILURES)[number];
const FAILING_IMAGE = new RegExp(`(?:^|/)(${FAILURES.join('|')})(?:[:@]|$)`);

/** Returns the given state of a pod; by default, the one that it reaches as of its image. */
export function podOutcome(pod: JsonObject, now: string, state?: PodFailureKind | 'starting'): PodOutcome {
  const [container = {}] = listOf(objectAt(pod, 'spec') ?? {}, 'containers');
  const image = stringAt(container, 'image') ?? '';
  const name = stringAt(container, 'name') ?? '';
  const kind = state ?? FAILURES.find((each) => each === FAILING_IMAGE.exec(image)?.[1]);
  switch (kind) {
    case 'missing':
    case 'unreachable':
      return {
        nodeName: NODE_NAME,
        status: pending(name, image, 'ImagePullBackOff', `Back-off pulling image "${image}"`),
        warning: { reason: 'Failed', message: PULL_ERRORS[kind]?.(image) ?? '' },
      };
    case 'starting':
      return {
        nodeName: NODE_NAME,
        status: pending(name, image, 'ContainerCreating', ''),
        warning: undefined,
      };
    case 'secret': {
      const message = 'failed to sync secret cache: timed out waiting for the condition';
      return {
        nodeName: NODE_NAME,
        status: pending(name, image, 'CreateContainerConfigError', message),
        warning: { reason: 'Failed', message: `Error: ${message}` },
      };
    }
    case 'full': {
      const message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 7000";
      return {
        nodeName: NODE_NAME,
        status: { phase: 'Failed', reason: 'OutOfcpu', message },
        warning: { reason: 'OutOfcpu', message },
      };
    }
    case 'huge': {
      const message = '0/1 nodes are available: 1 Insufficient cpu.';
      const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message };
      return {
        nodeName: undefined,
        status: { phase: 'Pending', conditions: [condition] },
        warning: { reason: 'FailedScheduling', message },
      };
    }
    case 'evicted': {
      const message = 'The node was low on resource: ephemeral-storage.';
      return {
        nodeName: NODE_NAME,
        status: { phase: 'Failed', reason: 'Evicted', message },
        warning: { reason: 'Evicted', message },
      };
    }
    case 'broken':
      return {
        nodeName: NODE_NAME,
        status: {
          ...pending(name, image, 'CrashLoopBackOff', 'back-off 10s restarting failed container'),
          phase: 'Running',
        },
        warning: { reason: 'BackOff', message: 'Back-off restarting failed container' },
      };
    default:
      return {
        nodeName: NODE_NAME,
        status: {
          phase: 'Running',
          podIP: '10.1.0.1',
          startTime: now,
          containerStatuses: [containerStatus(name, image, true, { running: { startedAt: now } })],
        },
        warning: undefined,
      };
  }
}

/** Returns an event that reports a warning about a pod. */
export function warningEvent(pod: JsonObject, { reason, message }: PodWarning, now: string): JsonObject {
  const metadata = objectAt(pod, 'metadata') ?? {};
  const name = stringAt(metadata, 'name') ?? '';
  const namespace = stringAt(metadata, 'namespace') ?? '';
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${reason.toLowerCase()}`, namespace },
    involvedObject: { kind: 'Pod', namespace, name, uid: stringAt(metadata, 'uid') ?? '' },
    reason,
    message,
    type: 'Warning',
    count: 1,
    firstTimestamp: now,
    lastTimestamp: now,
    source: { component: 'kubelet', host: NODE_NAME },
  };
}

function pending(name: string, image: string, reason: string, message: string): JsonObject {
  return {
    phase: 'Pending',
    containerStatuses: [containerStatus(name, image, false, { waiting: { reason, message } })],
  };
}

function containerStatus(name: string, image: string, ready: boolean, state: JsonObject): JsonObject {
  return { name, image, imageID: '', ready, restartCount: 0, state };
}

function listOf(object: JsonObject, key: string): readonly JsonObject[] {
  const value: JsonValue | undefined = object[key];
  return Array.isArray(value) ? (value as readonly JsonObject[]) : [];
}
