/** What every part of the simulated cloud stands on. */

import type { Clock, RandomSource } from '@nodepool/core';
import type { Quotas } from './quotas.js';
import type { CloudSettings } from './settings.js';

export interface Ground {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly quotas: Quotas;
  /** As they are now. */
  readonly settings: () => CloudSettings;
}
