/** Ways to spoil a launcher without touching its code: at the borders to ZooKeeper and to the cloud. */

import type { Driver } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { ExampleCloud } from '@nodepool/driver-example';
import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import type { Site } from './site.js';

/** Something that is wrong with every launcher of a run. Each part is optional. */
export interface Mutation {
  /** What it makes the launcher do. */
  readonly name: string;
  /** Number of the rule that it breaks. */
  readonly rule: string;
  /** Words that tell how it breaks the rule, where there are several ways. */
  readonly shows?: string;
  /** The kind of run in which that shows. Default: `nothing` goes wrong. */
  readonly trouble?: 'all' | 'nothing' | 'quota' | 'driver';
  /** Launchers in that run. Default 3. */
  readonly launchers?: number;
  /** Rewrites what is written in one transaction. */
  writes?(ops: readonly TransactionOp[]): readonly TransactionOp[];
  /** The connection to ZooKeeper. */
  client?(zooKeeper: ZooKeeper): ZooKeeper;
  /** The cloud as the spoilt driver uses it. */
  cloud?(cloud: ExampleCloud): ExampleCloud;
  driver?(driver: Driver): Driver;
  store?(store: Store): Store;
  /** The configuration as the launcher understands it. */
  config?(config: Site): Site;
}
