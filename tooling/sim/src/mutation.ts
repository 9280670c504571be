/** Ways to spoil a launcher without touching its code: at the borders to ZooKeeper and to the cloud. */

import type { Store } from '@nodepool/core';
import type { ExampleCloud } from '@nodepool/driver-example';
import type { TransactionOp } from '@nodepool/zookeeper';
import type { SiteConfig } from './site.js';

/** Something that is wrong with every launcher of a run. Each part is optional. */
export interface Mutation {
  /** What it makes the launcher do. */
  readonly name: string;
  /** Number of the rule that it breaks. */
  readonly rule: string;
  /** Rewrites what is written in one transaction. */
  writes?(ops: readonly TransactionOp[]): readonly TransactionOp[];
  /** The cloud as the spoilt driver uses it. */
  cloud?(cloud: ExampleCloud): ExampleCloud;
  store?(store: Store): Store;
  /** The configuration as the launcher understands it. */
  config?(config: SiteConfig): SiteConfig;
}
