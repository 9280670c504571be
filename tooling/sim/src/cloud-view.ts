/** The cloud as one process sees it: observed by the checker, out of reach when the network says so, silent to the dead. */

import { CloudError, type CloudInstance, type ExampleCloud, type InstanceSpec } from '@nodepool/driver-example';
import type { SimulatedProcess } from './process.js';
import { overlay } from './proxy.js';

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

/** What the rest of the cloud API looks like; the types are those of the cloud itself. */
type Api = Pick<ExampleCloud, 'describe' | 'createInstance' | 'deleteInstance' | 'listInstances' | 'consoleOf'>;

export function cloudView(
  cloud: ExampleCloud,
  process: SimulatedProcess,
  link: CloudLink,
  observer: CloudObserver,
): ExampleCloud {
  const never = <T>(): Promise<T> => new Promise(() => undefined);
  const call = async <T>(ask: () => T | Promise<T>): Promise<T> => {
    if (process.dead || link.state === 'silent') return never();
    if (link.state === 'cut') throw new CloudError('answer-lost', 'the cloud cannot be reached');
    const answer = Promise.resolve().then(ask);
    return process.receive(answer);
  };
  const api: Api = {
    describe: () => call(() => cloud.describe()),
    createInstance: (spec) =>
      call(async () => {
        observer.creating(process, spec);
        try {
          return await cloud.createInstance(spec);
        } finally {
          observer.created(process, spec);
        }
      }),
    deleteInstance: (id) =>
      call(() => {
        const instance = cloud.existingInstances().find((each) => each.id === id);
        if (instance !== undefined) observer.deleting(process, instance);
        return cloud.deleteInstance(id);
      }),
    listInstances: (marker, limit) => call(() => cloud.listInstances(marker, limit)),
    consoleOf: (id) => call(() => cloud.consoleOf(id)),
  };
  return overlay(cloud, api);
}
