/** A driver and the simulated cloud that the matrix disturbs. */

import type { Clock, Driver, ExternalId, JsonObject, RandomSource } from '@nodepool/core';
import type { CallFault, CloudConnections } from '@nodepool/simulated-cloud';

export interface Target {
  readonly driver: Driver;
  /** Name of the driver in the configuration. */
  readonly name: string;
  /** A provider section without a name, with the pool `main` and the label of the runs. */
  readonly section: JsonObject;
  /** Lets every call fail, or those of an operation, until `calm`. */
  readonly fail: (fault: CallFault, operation?: string) => void;
  /** Refuses connections until `calm`. */
  readonly refuse: () => void;
  /** Sets the time until an instance runs (ms). */
  readonly setBootTime: (ms: number) => void;
  /** Refuses the credentials until `calm`. */
  readonly refuseLogin: () => void;
  /** Takes an instance away, as the cloud does with a spot instance. */
  readonly takeAway: (id: ExternalId) => void;
  /** Disturbances that only this cloud knows, by title. */
  readonly special: ReadonlyMap<string, () => void>;
  /** Ends all disturbances. */
  readonly calm: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface TargetOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Further keys of the label, e.g. for spot instances. */
  readonly label?: JsonObject;
}

/** Opens a cloud for its driver on a clock. */
export type OpenTarget = (options: TargetOptions) => Promise<Target>;

export const LATENCY_MS = 100;
/** Pattern of a fault that matches every operation. */
export const ALL = '*';

export interface SimulatedCloud<S> {
  readonly faults: { clear(): void };
  readonly connections: CloudConnections;
  configure(changes: Partial<S> | { readonly bootMs: number }): void;
  close(): Promise<void>;
}

/** Returns what all targets have in common. */
export function common<S>(
  cloud: SimulatedCloud<S>,
  calmSettings: Partial<S>,
): Pick<Target, 'refuse' | 'setBootTime' | 'calm' | 'close'> {
  let isRefusing = false;
  return {
    refuse: () => {
      isRefusing = true;
      cloud.connections.refuse();
    },
    setBootTime: (bootMs) => cloud.configure({ bootMs }),
    calm: async () => {
      cloud.faults.clear();
      cloud.configure(calmSettings);
      if (isRefusing) await cloud.connections.accept();
      isRefusing = false;
    },
    close: () => cloud.close(),
  };
}

/** Label of all requests. */
export const LABEL = 'job';
/** Boot time of undisturbed clouds (ms). */
export const BOOT_MS = 60_000;
/** Time that a cloud needs to delete an instance (ms). */
export const DELETE_MS = 5000;
/** Maximum number of nodes of a provider: more than the load needs. */
export const MAX_NODES = 200;

/** Key of pools whose nodes have a login; there is none in simulated clouds. */
export const NO_LOGIN = { 'host-key-checking': false } as const;

/** Returns the pool of a provider. */
export function mainPool(label: JsonObject, more: JsonObject = {}): JsonObject {
  return {
    name: 'main',
    'max-servers': MAX_NODES,
    labels: [{ name: LABEL, ...label }],
    ...more,
  };
}

/** Returns an external id, which is a text with the clouds of the matrix. */
export function nameOf(id: ExternalId): string {
  if (typeof id === 'string') return id;
  throw new TypeError('the external id is no text');
}
