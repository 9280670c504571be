/** The parsed configuration file: defaults filled in, units converted, references resolved. */

import type { DiskImageConfig, Driver, ProviderConfig } from '@nodepool/core';
import type { DriverPackage } from './discovery/load-driver.js';
import type { ReadySettings } from './ready/settings.js';
import type { FairShares } from './fair-shares.js';

export interface NodepoolConfig {
  readonly webapp: { readonly port: number; readonly listenAddress: string };
  readonly elementsDir: string | undefined;
  readonly imagesDir: string | undefined;
  readonly buildLogDir: string;
  /** Number of logs kept per image; -1 keeps all. */
  readonly buildLogRetention: number;
  readonly zookeeper: ZooKeeperConfig;
  readonly labels: ReadonlyMap<string, TopLabelConfig>;
  /** Infinity: held nodes never expire. */
  readonly maxHoldAgeMs: number;
  /** Disk images by name, merged with their parents, abstract ones included. */
  readonly diskImages: ReadonlyMap<string, DiskImageConfig>;
  /** Providers by name. Providers whose driver could not be loaded are in `brokenProviders` instead. */
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  readonly brokenProviders: ReadonlyMap<string, { readonly driver: string; readonly reason: string }>;
  /** Names of providers that cannot be served, e.g. because their cloud is not in `clouds.yaml`. */
  readonly unserved?: ReadonlySet<string>;
  /** Limits by tenant and resource name (`instances`, `cores`, `ram`, `volumes`, `volume-gb`, …). */
  readonly tenantLimits: ReadonlyMap<string, Readonly<Record<string, number>>>;
  /** Weights of the tenants; absent or undefined if only the priorities of requests count. */
  readonly fairShares?: FairShares | undefined;
  /** Packages or paths by the short names of drivers. */
  readonly drivers: ReadonlyMap<string, string>;
  /** The loaded drivers of `providers`, by their configured name. */
  readonly loadedDrivers: ReadonlyMap<string, Driver>;
  /** The packages of the loaded drivers, by the same names; drivers that come from no package are absent. */
  readonly driverPackages?: ReadonlyMap<string, DriverPackage>;
}

export interface ZooKeeperConfig {
  /** `host:port`, IPv6 hosts in brackets. */
  readonly servers: readonly string[];
  /** With leading slash; '' for none. */
  readonly chroot: string;
  readonly tls:
    | {
        readonly certFile: string;
        readonly keyFile: string;
        readonly caFile: string;
        /** False to accept certificates of the CA for any host. */
        readonly verifyHostname: boolean;
      }
    | undefined;
  readonly sessionTimeoutMs: number;
}

/** Default of `max-idle-time`, seconds. */
export const DEFAULT_MAX_IDLE_SECONDS = 600;

/** Default of `TopLabelConfig.maxWaitMs`. */
export const DEFAULT_MAX_WAIT_MS = 6 * 3_600_000;

export interface TopLabelConfig {
  readonly name: string;
  /** -1: the label is disabled. */
  readonly minReady: number;
  /** Number of ready nodes that is not constant; undefined: `minReady` alone decides. */
  readonly ready?: ReadySettings | undefined;
  /** Infinity: no limit. */
  readonly maxReadyAgeMs: number;
  /** Age from its creation at which a free ready node is replaced. Absent or Infinity: no limit. */
  readonly maxAgeMs?: number | undefined;
  /** Age from its creation before which a ready node is not deleted. Absent: 0. */
  readonly minRetentionMs?: number | undefined;
  /** Time after which a free ready node that the label does not need is deleted. Absent or Infinity: never. */
  readonly maxIdleMs?: number | undefined;
  /** Limit of the wait of a request for the label, from its creation. */
  readonly maxWaitMs: number;
}
