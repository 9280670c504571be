/** The cloud as one process sees it: observed by the checker, in whatever weather, out of reach when the network says so, silent to the dead. */

import type { RandomSource } from '@nodepool/core';
import { CloudError, type CloudInstance, type ExampleCloud, type InstanceSpec } from '@nodepool/driver-example';
import { type SimulatedProcess, overlay } from '@nodepool/simulated-process';

/** Hears of calls right before the cloud does, and of creations right after they were answered. */
export interface CloudObserver {
  creating(process: SimulatedProcess, spec: InstanceSpec): void;
  created(process: SimulatedProcess, spec: InstanceSpec): void;
  deleting(process: SimulatedProcess, instance: CloudInstance): void;
}

/** How a process reaches the cloud; a fault changes it. */
export interface CloudLink {
  state: 'open' | 'cut' | 'silent';
}

/** What goes wrong between everybody and the cloud, each as the chance of a call, 0 to 1. */
export interface CloudWeather {
  /** Refused for now, without a word on when to come again. */
  throttled: number;
  /** Never answered, and never heard. */
  unheard: number;
  /** Heard, and never answered. */
  unanswered: number;
  /** The cloud says that it has other limits than it has. */
  misstatedLimits: number;
  readonly random: RandomSource;
}

export const FAIR_WEATHER = { throttled: 0, unheard: 0, unanswered: 0, misstatedLimits: 0 } as const;

/** What lies between a process and the cloud. */
export interface CloudPath {
  readonly process: SimulatedProcess;
  readonly link: CloudLink;
  readonly weather: CloudWeather;
  readonly observer: CloudObserver;
  /** The process is about to change something in the cloud, or just did. */
  readonly atStep: () => void;
}

/** What the rest of the cloud API looks like; the types are those of the cloud itself. */
type Api = Pick<ExampleCloud, 'describe' | 'createInstance' | 'deleteInstance' | 'listInstances' | 'consoleOf'>;

export function cloudView(cloud: ExampleCloud, { process, link, weather, observer, atStep }: CloudPath): ExampleCloud {
  const call = caller(process, link, weather);
  const api: Api = {
    describe: () =>
      call(async () => {
        const description = await cloud.describe();
        return happens(weather, 'misstatedLimits') ? { ...description, quota: misstated(weather.random) } : description;
      }),
    createInstance: (spec) =>
      call(async () => {
        atStep();
        if (process.dead) return never();
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

function caller(process: SimulatedProcess, link: CloudLink, weather: CloudWeather) {
  return async <T>(ask: () => T | Promise<T>): Promise<T> => {
    if (process.dead || link.state === 'silent' || happens(weather, 'unheard')) return never();
    if (link.state === 'cut') throw new CloudError('answer-lost', 'the cloud cannot be reached');
    if (happens(weather, 'throttled')) throw new CloudError('throttled', 'too many calls');
    const answer = Promise.resolve().then(ask);
    if (!happens(weather, 'unanswered')) return process.receive(answer);
    // What becomes of it is between the cloud and nobody.
    answer.catch(() => undefined);
    return never();
  };
}

function happens(weather: CloudWeather, what: keyof typeof FAIR_WEATHER): boolean {
  return weather[what] > 0 && weather.random.next() < weather[what];
}

/** Limits that are no limits, or nearly nothing. */
function misstated(random: RandomSource): { readonly instances: number; readonly cores: number; readonly ram: number } {
  const instances = random.next() < 0.5 ? -1 : Math.floor(random.next() * 3);
  return { instances, cores: -1, ram: -1 };
}

/** What somebody waits for who is dead, or whose call got lost. */
export function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
