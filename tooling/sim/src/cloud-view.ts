/**
 * A process's view of the cloud: observed by the checker, subject to faults, unreachable if the network is down, and
 * silent for dead processes.
 */

import type { RandomSource } from '@nodepool/core';
import { CloudError, type CloudInstance, type ExampleCloud, type InstanceSpec } from '@nodepool/driver-example';
import { type SimulatedProcess, overlay } from '@nodepool/simulated-process';

export const REFUSALS = ['zone-1', 'zone-2', 'full', 'throttled', 'unreachable'] as const;

/** A refusal of creations of one provider: in one zone, or in all of them. */
export type Refusal = (typeof REFUSALS)[number];

/** Observes calls right before the cloud receives them, and creations right after they are answered. */
export interface CloudObserver {
  creating(process: SimulatedProcess, spec: InstanceSpec): void;
  created(process: SimulatedProcess, spec: InstanceSpec): void;
  deleting(process: SimulatedProcess, instance: CloudInstance): void;
}

/** Connection of a process to the cloud; faults change it. */
export interface CloudLink {
  state: 'open' | 'cut' | 'silent';
}

/** Faults between all processes and the cloud, each as a probability per call (0 to 1). */
export interface CloudFaults {
  /** Refused temporarily, without a retry time. */
  throttled: number;
  /** Never received and never answered. */
  unreceived: number;
  /** Received and never answered. */
  unanswered: number;
  /** The cloud reports wrong limits. */
  misstatedLimits: number;
  /** Refusals of creations by provider. */
  readonly refusals?: Map<string, Refusal>;
  readonly random: RandomSource;
}

export const NO_CLOUD_FAULTS = { throttled: 0, unreceived: 0, unanswered: 0, misstatedLimits: 0 } as const;

/** The path from a process to the cloud. */
export interface CloudPath {
  readonly process: SimulatedProcess;
  readonly link: CloudLink;
  readonly cloudFaults: CloudFaults;
  readonly observer: CloudObserver;
  /** Called before and after each change that the process makes in the cloud. */
  readonly atStep: () => void;
}

/** The part of the cloud's API that is passed through, with the cloud's own types. */
type Api = Pick<ExampleCloud, 'describe' | 'createInstance' | 'deleteInstance' | 'listInstances' | 'consoleOf'>;

export function cloudView(
  cloud: ExampleCloud,
  { process, link, cloudFaults, observer, atStep }: CloudPath,
): ExampleCloud {
  const call = caller(process, link, cloudFaults);
  const api: Api = {
    describe: () =>
      call(async () => {
        const description = await cloud.describe();
        return happens(cloudFaults, 'misstatedLimits')
          ? { ...description, quota: misstated(cloudFaults.random) }
          : description;
      }),
    createInstance: (spec) =>
      call(async () => {
        atStep();
        if (process.dead) return never();
        refuse(cloudFaults, spec);
        observer.creating(process, spec);
        try {
          return await cloud.createInstance(spec);
        } finally {
          observer.created(process, spec);
          atStep();
        }
      }),
    deleteInstance: (id) =>
      call(() => {
        atStep();
        if (process.dead) return never();
        const instance = cloud.existingInstances().find((each) => each.id === id);
        if (instance !== undefined) observer.deleting(process, instance);
        return cloud.deleteInstance(id);
      }),
    listInstances: (marker, limit) => call(() => cloud.listInstances(marker, limit)),
    consoleOf: (id) => call(() => cloud.consoleOf(id)),
  };
  return overlay(cloud, api);
}

/** Throws the refusal of the provider's cloud, if there is one. */
function refuse({ refusals, random }: CloudFaults, { tags, zone }: InstanceSpec): void {
  const refusal = refusals?.get(tags['nodepool_provider_name'] ?? '');
  if (refusal === undefined || (refusal === 'throttled' && random.next() < 0.5)) return;
  if (refusal === 'throttled') throw new CloudError('throttled', 'too many calls');
  if (refusal === 'unreachable') throw new CloudError('internal', 'the cloud is down');
  if (refusal === 'full' || refusal === zone) throw new CloudError('no-capacity', `zone ${zone ?? ''} is full`);
}

function caller(process: SimulatedProcess, link: CloudLink, cloudFaults: CloudFaults) {
  return async <T>(ask: () => T | Promise<T>): Promise<T> => {
    if (process.dead || link.state === 'silent' || happens(cloudFaults, 'unreceived')) return never();
    if (link.state === 'cut') throw new CloudError('answer-lost', 'the cloud cannot be reached');
    if (happens(cloudFaults, 'throttled')) throw new CloudError('throttled', 'too many calls');
    const answer = Promise.resolve().then(ask);
    if (!happens(cloudFaults, 'unanswered')) return process.receive(answer);
    // The caller never receives the answer.
    answer.catch(() => undefined);
    return never();
  };
}

function happens(cloudFaults: CloudFaults, what: keyof typeof NO_CLOUD_FAULTS): boolean {
  return cloudFaults[what] > 0 && cloudFaults.random.next() < cloudFaults[what];
}

/** Returns no limits, or very low ones. */
function misstated(random: RandomSource): { readonly instances: number; readonly cores: number; readonly ram: number } {
  const instances = random.next() < 0.5 ? -1 : Math.floor(random.next() * 3);
  return { instances, cores: -1, ram: -1 };
}

/** Returns a promise that never settles, for dead processes and lost calls. */
export function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
