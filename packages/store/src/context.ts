/** What the parts of a store share. */

import type { LockRecipe, ZooKeeper } from '@nodepool/zookeeper';
import type { Logger, Clock, RandomSource } from '@nodepool/core';
import type { Caches } from './caches.js';

export interface StoreContext {
  readonly zooKeeper: ZooKeeper;
  readonly caches: Caches;
  readonly locks: LockRecipe;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

/** Unix seconds, as records have them. */
export function now(context: StoreContext): number {
  return context.clock.now() / 1000;
}

/**
 * Resolves when everything that arrived together with the present news has been told: what one transaction of somebody
 * else did arrives as several events, and who acts on the first of them would act on half of it.
 */
export function news(): Promise<void> {
  return Promise.resolve();
}
