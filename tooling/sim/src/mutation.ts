/** Mutations of a launcher without changes to its code, at its interfaces to ZooKeeper and the cloud. */

import type { Driver } from '@nodepool/core';
import type { Store } from '@nodepool/store';
import type { ExampleCloud } from '@nodepool/driver-example';
import type { TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import type { RunKind } from './run-kinds.js';
import type { Site } from './site.js';

/** A defect of every launcher in a run. Each part is optional. */
export interface Mutation {
  /** Description of the defect. */
  readonly name: string;
  /** Number of the violated rule. */
  readonly rule: string;
  /** Part of the violation's message, for rules that can be violated in several ways. */
  readonly shows?: string;
  /** Kind of run that detects the defect. Default: `nothing` fails. */
  readonly fault?: RunKind;
  /** Launchers in that run. Default 3. */
  readonly launchers?: number;
  /** The first seed to try: one that detects the defect, to save time. Default 1. */
  readonly firstSeed?: number;
  /** Rewrites the operations of one transaction. */
  writes?(ops: readonly TransactionOp[]): readonly TransactionOp[];
  /** Wraps the connection to ZooKeeper. */
  client?(zooKeeper: ZooKeeper): ZooKeeper;
  /** Wraps the cloud that the defective driver uses. */
  cloud?(cloud: ExampleCloud): ExampleCloud;
  driver?(driver: Driver): Driver;
  store?(store: Store): Store;
  /** Wraps the store of builders. */
  builderStore?(store: Store): Store;
  /** Changes the configuration that the launcher applies. */
  config?(config: Site): Site;
}
