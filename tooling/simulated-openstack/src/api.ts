/** Operations of tests and other users on a simulated OpenStack. */

import type { CallLog, CloudConnections, SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import type { CloudCall, FaultPlan } from './faults.js';
import type { Inspector } from './inspect.js';
import type { ProjectQuota } from './quotas.js';
import type { CloudSettings } from './settings.js';

export type SimulatedOpenStackOptions = SimulatedCloudOptions<CloudSettings>;

/** A running simulated OpenStack. */
export interface SimulatedOpenStack {
  /**
   * e.g. `http://127.0.0.1:20345`; base URL of the services `/identity/v3`, `/compute/v2.1`, `/image`, `/network` and
   * `/volume/v3`.
   */
  readonly url: string;
  /** `auth_url` for a test's `clouds.yaml`. */
  readonly authUrl: string;
  /** Path of a clouds.yaml with the clouds `real`, `limited`, `real-admin` and `real-appcred`. */
  readonly cloudsYaml: string;
  /** Faults to inject. */
  readonly faults: FaultPlan;
  /** Direct access to the cloud's content without the API. */
  readonly inspect: Inspector;
  /** Received calls, counted by operation. */
  readonly calls: CallLog<CloudCall>;
  /** Refuses connections, and accepts them again. */
  readonly connections: CloudConnections;
  /** Returns the modifiable quota of a project by name. Throws if the project does not exist. */
  quota(project: string): ProjectQuota;
  /** Changes settings from now on. */
  configure(settings: Partial<CloudSettings>): void;
  /** Closes all connections and timers and deletes created files. Idempotent. */
  close(): Promise<void>;
}
