/** What a test, or whoever else plays with a simulated OpenStack, can do to it and see of it. */

import type { Clock, RandomSource } from '@nodepool/core';
import type { CallLog } from './calls.js';
import type { FaultPlan } from './faults.js';
import type { Inspector } from './inspect.js';
import type { ProjectQuota } from './quotas.js';
import type { CloudSettings } from './settings.js';

export interface SimulatedOpenStackOptions {
  /** Default: the system's. Boots, deletions, expiry of tokens and latency happen on it; HTTP itself takes real time. */
  readonly clock?: Clock;
  /** Ids, and faults that strike by chance. Default: the system's. */
  readonly random?: RandomSource;
  /** Port on 127.0.0.1; default: a free one. */
  readonly port?: number;
  /** Default for each: `DEFAULT_SETTINGS`. */
  readonly settings?: Partial<CloudSettings>;
}

/** A simulated OpenStack that answers. */
export interface SimulatedOpenStack {
  /** e.g. `http://127.0.0.1:20345`; the services are below it: `/identity/v3`, `/compute/v2.1`, `/image`, `/network`, `/volume/v3`. */
  readonly url: string;
  /** `auth_url` for whoever writes a clouds.yaml of their own. */
  readonly authUrl: string;
  /** Path of a clouds.yaml with the clouds `real`, `limited`, `real-admin` and `real-appcred`. */
  readonly cloudsYaml: string;
  /** What goes wrong. */
  readonly faults: FaultPlan;
  /** What there is, without going through the API. */
  readonly inspect: Inspector;
  /** Calls that came in, counted by operation. */
  readonly calls: CallLog;
  /** The quota of a project, by its name, to be changed. Throws when there is no such project. */
  quota(project: string): ProjectQuota;
  /** Changes how the cloud behaves from now on. */
  configure(settings: Partial<CloudSettings>): void;
  /** Ends all connections, timers and the files it made. Idempotent. */
  close(): Promise<void>;
}
