/** Dependencies shared by all parts of the bridge. */

import type { Clock, Logger, Metrics, RandomSource, TaskSupervisor } from '@nodepool/core';
import type { Requestor } from '@nodepool/requestor';
import type { Store } from '@nodepool/store';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { CapacitySource } from './capacity/capacity-source.js';
import type { RunnerProcesses } from './runners/runner-process.js';
import type { RepositoryLabels } from './scale-set/phases.js';

export interface BridgeContext {
  readonly zooKeeper: ZooKeeper;
  readonly store: Store;
  readonly requestor: Requestor;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tasks: TaskSupervisor;
  readonly capacity: CapacitySource;
  readonly repositories: RepositoryLabels;
  /** Host and process, for GitHub and for operators. */
  readonly identifier: string;
  readonly version: string;
  /** Interval of the comparison with GitHub (ms). */
  readonly compareMs: number;
  readonly processes: RunnerProcesses;
}
