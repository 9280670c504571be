/** The configuration file, read: defaults filled in, units converted, references resolved. */

import type { DiskImageConfig, Driver, ProviderConfig } from '@nodepool/core';
import type { DriverPackage } from './discovery/discovery.js';

export interface NodepoolConfig {
  readonly webapp: { readonly port: number; readonly listenAddress: string };
  readonly elementsDir: string | undefined;
  readonly imagesDir: string | undefined;
  readonly buildLogDir: string;
  /** Files kept per image; -1: all. */
  readonly buildLogRetention: number;
  readonly zookeeper: ZooKeeperConfig;
  /** By name. */
  readonly labels: ReadonlyMap<string, TopLabelConfig>;
  /** Infinity: held nodes are never deleted for their age. */
  readonly maxHoldAgeMs: number;
  /** By name; parents merged; abstract ones included. */
  readonly diskImages: ReadonlyMap<string, DiskImageConfig>;
  /** By name. Providers whose driver could not be loaded are in `brokenProviders` instead. */
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  readonly brokenProviders: ReadonlyMap<string, { readonly driver: string; readonly reason: string }>;
  /** By tenant: limits by resource name (`instances`, `cores`, `ram`, `volumes`, `volume-gb`, …). */
  readonly tenantLimits: ReadonlyMap<string, Readonly<Record<string, number>>>;
  /** Short names of driver packages. */
  readonly drivers: ReadonlyMap<string, string>;
  /** The drivers that were loaded for `providers`, by their name there. */
  readonly loadedDrivers: ReadonlyMap<string, Driver>;
  /** The packages that they are from, by the same names; those that come from no package are not there. */
  readonly driverPackages?: ReadonlyMap<string, DriverPackage>;
}

export interface ZooKeeperConfig {
  /** `host:port`, IPv6 hosts in brackets. */
  readonly servers: readonly string[];
  /** With leading slash; '' for none. */
  readonly chroot: string;
  readonly tls: { readonly certFile: string; readonly keyFile: string; readonly caFile: string } | undefined;
  readonly sessionTimeoutMs: number;
}

export interface TopLabelConfig {
  readonly name: string;
  /** -1: the label is disabled. */
  readonly minReady: number;
  /** Infinity: no limit. */
  readonly maxReadyAgeMs: number;
}
