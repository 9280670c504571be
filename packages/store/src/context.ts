import type { LockRecipe, ZooKeeper } from '@nodepool/zookeeper';
import type { Logger, Clock, RandomSource } from '@nodepool/core';
import type { Caches } from './tables/caches.js';

export interface StoreContext {
  readonly zooKeeper: ZooKeeper;
  readonly caches: Caches;
  readonly locks: LockRecipe;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

/** Returns the current time in unix seconds, the unit of records. */
export function now(context: StoreContext): number {
  return context.clock.now() / 1000;
}
