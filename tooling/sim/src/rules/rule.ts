/** What a rule of the checker is: it hears of everything that happens, and says what is wrong. */

import type { CloudInstance, ExampleCloud, InstanceSpec } from '@nodepool/driver-example';
import type { TransactionOp } from '@nodepool/zookeeper';
import type { Commit, Observed } from '../observed.js';

/** What rules may look at. */
export interface Sight {
  readonly observed: Observed;
  readonly cloud: ExampleCloud;
  /** Milliseconds since the start. */
  now(): number;
  /** `max-servers` of a pool as any running launcher has it: the greatest; undefined: none has the pool. */
  maxServers(provider: string, pool: string): number | undefined;
}

/** Each method returns what breaks the rule, or undefined. */
export interface Rule {
  /** As the design numbers it: `S` for safety, `L` for liveness. */
  readonly number: string;
  committed?(commit: Commit): string | undefined;
  /** A launcher is about to write this, in one transaction. */
  writing?(ops: readonly TransactionOp[]): string | undefined;
  creating?(spec: InstanceSpec): string | undefined;
  created?(spec: InstanceSpec): string | undefined;
  deleting?(instance: CloudInstance): string | undefined;
  /** Another state of ZooKeeper was brought back: what was known before does not count any more. */
  forget?(): void;
}
