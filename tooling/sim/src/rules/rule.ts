/** The interface of a rule, which observes all events and reports violations. */

import type { Instance, JsonObject } from '@nodepool/core';
import type { CloudInstance, ExampleCloud, InstanceSpec } from '@nodepool/driver-example';
import type { TransactionOp } from '@nodepool/zookeeper';
import type { Commit, Observed } from '../observed.js';

/** State that rules may read. */
export interface CheckerView {
  readonly observed: Observed;
  readonly cloud: ExampleCloud;
  /** Milliseconds since the start. */
  now(): number;
  /** Milliseconds since the epoch, as in records. */
  wallClock(): number;
  /** Highest `max-servers` of a pool in any running launcher's configuration; undefined if none has the pool. */
  maxServers(provider: string, pool: string): number | undefined;
  /** The cloud's instance limit of a provider if it is constant; undefined if there is none or it changes. */
  providerInstances(provider: string): number | undefined;
  /** Highest instance limit of a tenant in any running launcher's configuration; undefined if unlimited. */
  tenantInstances(tenant: string): number | undefined;
  /** Weights of tenants if a running launcher's configuration has fair shares. */
  shares(): Readonly<Record<string, number>> | undefined;
  /** All labels of the site. */
  readonly labels: readonly string[];
  /** Most ready nodes of a label that any running launcher's configuration asks for, by the nodes in use. */
  wantedReady(label: string, inUse: number): number;
  /** Time when a launcher was last configured, milliseconds since the start. */
  configuredAt(): number;
  /** Returns true if the launcher of this name keeps a provider in all configurations that it may still act upon. */
  keepsProvider(launcher: string, provider: string): boolean;
  /** Returns since when a machine cannot be used, milliseconds since the start; undefined if it can. */
  unusableSince(host: string): number | undefined;
  /** Returns true if the launcher of this name has the node's machine in all configurations that it may act upon. */
  hasMachine(launcher: string | undefined, node: JsonObject): boolean;
  /** Returns the time of the last fault that affected the launcher, milliseconds since the start. */
  disturbedAt(launcher: string): number;
  /** Returns true if no node of the build ever accepts logins. */
  hasNoLogin(build: string): boolean;
  /** True in a run whose clouds only refuse creations: no node is faulty. */
  readonly onlyRefusals: boolean;
  /** The current record; undefined if it does not exist or is not a JSON object. */
  znode(path: string): JsonObject | undefined;
}

/** A complete listing of a provider's instances as a launcher has received it. */
export interface SeenListing {
  readonly launcher: string;
  readonly provider: string;
  /** Milliseconds since the epoch. */
  readonly requestedAt: number;
  readonly instances: readonly Instance[];
}

/** A rule whose methods return a description of a violation, or undefined. */
export interface Rule {
  /** As in the design: `S` for safety, `L` for liveness. */
  readonly number: string;
  committed?(commit: Commit): string | undefined;
  /** Called before the launcher of this name writes a transaction. */
  writing?(ops: readonly TransactionOp[], launcher: string): string | undefined;
  creating?(spec: InstanceSpec, launcher: string): string | undefined;
  created?(spec: InstanceSpec): string | undefined;
  deleting?(instance: CloudInstance): string | undefined;
  /** Called before a builder deletes an image in the cloud. */
  deletingImage?(image: string): string | undefined;
  /** Called when a launcher has received a complete listing of a provider's instances. */
  listed?(listing: SeenListing): void;
  /** Discards all knowledge after an older state of ZooKeeper was restored. */
  forget?(): void;
}
