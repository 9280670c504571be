/** What a rule of the checker is: it hears of everything that happens, and says what is wrong. */

import type { JsonObject } from '@nodepool/core';
import type { CloudInstance, ExampleCloud, InstanceSpec } from '@nodepool/driver-example';
import type { TransactionOp } from '@nodepool/zookeeper';
import type { Commit, Observed } from '../observed.js';

/** What rules may look at. */
export interface Sight {
  readonly observed: Observed;
  readonly cloud: ExampleCloud;
  /** Milliseconds since the start. */
  now(): number;
  /** Milliseconds since the epoch, as records have the time. */
  wallClock(): number;
  /** `max-servers` of a pool as any running launcher has it: the greatest; undefined: none has the pool. */
  maxServers(provider: string, pool: string): number | undefined;
  /** Instances that the cloud allows a provider, where that never changes; undefined: no limit, or a changing one. */
  providerInstances(provider: string): number | undefined;
  /** Instances that a tenant may have, as any running launcher has it: the greatest; undefined: no limit. */
  tenantInstances(tenant: string): number | undefined;
  /** All labels of the site. */
  readonly labels: readonly string[];
  /** `min-ready` of a label as any running launcher has it: the greatest. */
  minReady(label: string): number;
  /** When a launcher was last configured, milliseconds since the start. */
  configuredAt(): number;
  /** Whether the launcher of this name goes on with a provider, by all that it was ever told and may still act upon. */
  keepsProvider(launcher: string, provider: string): boolean;
  /** A record as it is now; undefined: there is none, or it is no JSON object. */
  znode(path: string): JsonObject | undefined;
}

/** Each method returns what breaks the rule, or undefined. */
export interface Rule {
  /** As the design numbers it: `S` for safety, `L` for liveness. */
  readonly number: string;
  committed?(commit: Commit): string | undefined;
  /** The launcher of this name is about to write this, in one transaction. */
  writing?(ops: readonly TransactionOp[], launcher: string): string | undefined;
  creating?(spec: InstanceSpec): string | undefined;
  created?(spec: InstanceSpec): string | undefined;
  deleting?(instance: CloudInstance): string | undefined;
  /** Another state of ZooKeeper was brought back: what was known before does not count any more. */
  forget?(): void;
}
