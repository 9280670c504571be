/** Input of the launch stage. */

import type {
  DriverError,
  ImageUpload,
  LabelConfig,
  Logger,
  NodeRequestHandler,
  PoolConfig,
  Provider,
} from '@nodepool/core';
import type { NodeHandle } from '@nodepool/store';
import type { LaunchPlace } from '../diagnostics/timeline-recorder.js';
import type { Shortfall } from '../quota/quota-scope.js';

/** A node to launch. Its record is locked and holds the identity of the attempt (`progress`). */
export interface LaunchJob {
  readonly node: NodeHandle;
  readonly provider: Provider;
  readonly driverHandler: NodeRequestHandler;
  readonly pool: PoolConfig;
  readonly label: LabelConfig;
  readonly upload: ImageUpload | undefined;
  /** The requestor of the request, for metrics. */
  readonly requestor: string | null;
  /** An earlier process may have begun this attempt. */
  readonly resumed: boolean;
  /** Aborts when the request ends early, or when the launcher has lost its locks. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Resolves with a limit that another instance of the node would exceed, given all records up to this id. */
  retryShortfall(lastId: string): Promise<Shortfall | undefined>;
  /** Returns true if another pool can serve the request while the cloud of this one fails. */
  canMoveOn(): boolean;
  /** Reports the end of each attempt, with the failure if it failed. */
  onAttempt(failure: DriverError | undefined): void;
}

/** Returns where the node of the job is launched, for its timeline. */
export function placeOf({ provider, pool, label }: Pick<LaunchJob, 'provider' | 'pool' | 'label'>): LaunchPlace {
  return { provider: provider.config.name, pool: pool.name, label: label.name };
}
