/** The operations of a test, or of any other user, on a simulated OpenStack. */

import type { CallLog, SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import type { CloudCall, FaultPlan } from './faults.js';
import type { Inspector } from './inspect.js';
import type { ProjectQuota } from './quotas.js';
import type { CloudSettings } from './settings.js';

export type SimulatedOpenStackOptions = SimulatedCloudOptions<CloudSettings>;

/** A simulated OpenStack that answers. */
export interface SimulatedOpenStack {
  /** e.g. `http://127.0.0.1:20345`; the services are below it: `/identity/v3`, `/compute/v2.1`, `/image`, `/network`, `/volume/v3`. */
  readonly url: string;
  /** `auth_url` for a `clouds.yaml` of the test. */
  readonly authUrl: string;
  /** Path of a clouds.yaml with the clouds `real`, `limited`, `real-admin` and `real-appcred`. */
  readonly cloudsYaml: string;
  /** What goes wrong. */
  readonly faults: FaultPlan;
  /** What there is, without going through the API. */
  readonly inspect: Inspector;
  /** Calls that came in, counted by operation. */
  readonly calls: CallLog<CloudCall>;
  /** The quota of a project, by its name, to be changed. Throws when there is no such project. */
  quota(project: string): ProjectQuota;
  /** Changes how the cloud behaves from now on. */
  configure(settings: Partial<CloudSettings>): void;
  /** Ends all connections, timers and the files it made. Idempotent. */
  close(): Promise<void>;
}
