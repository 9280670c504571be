/** What the parts of a pool worker share. */

import type { Logger, PoolConfig, Provider } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { PoolLabels } from './pool-labels.js';
import type { Place, QuotaLedger } from '../quota/quota-ledger.js';

export interface Pool {
  readonly context: LauncherContext;
  readonly provider: Provider;
  readonly config: PoolConfig;
  /** What goes into `declined_by`. */
  readonly id: string;
  /** Who decides, in explanations. */
  readonly by: string;
  readonly place: Place;
  readonly labels: PoolLabels;
  readonly ledger: QuotaLedger;
  readonly log: Logger;
  /** Records a decision about a request, for explanations. */
  decided(requestId: string, what: string, reason?: string): void;
}
