/** Configuration of a provider for the launcher and the frameworks. Drivers extend these types with own fields. */

import type { JsonObject } from '../model/json.js';
import type { ImageUploadSettings } from './image-settings.js';
import type { ImageTests } from './image-tests.js';

export interface ProviderConfig<L extends LabelConfig = LabelConfig> {
  readonly name: string;
  /** Name of the driver in the configuration. */
  readonly driver: string;
  /** Priority; lower values are served first. */
  readonly priority: number;
  /** Maximum number of requests handled at the same time; `Infinity` for no limit. */
  readonly maxConcurrency: number;
  readonly launchRetries: number;
  readonly launchTimeoutMs: number;
  /** Maximum time until the login responds. */
  readonly bootTimeoutMs: number;
  /** API calls per second; `Infinity` for no limit. */
  readonly callsPerSecond: number;
  /** False if the provider launches nothing: its pools serve nodes of `ProviderContext.nodeSupply`. Default true. */
  readonly createsNodes?: boolean | undefined;
  /**
   * True if launches wait for nodes of other providers (`ProviderContext.backingNodes`). The duration of a launch then
   * shows nothing about this provider. Default false.
   */
  readonly waitsForOthers?: boolean | undefined;
  /**
   * False if an instance that the cloud has marked as deleted occupies nothing that limits are for. The launcher then
   * stops counting it if its deletion takes longer than five minutes. Default true.
   */
  readonly countsUnendedDeletions?: boolean | undefined;
  readonly pools: ReadonlyMap<string, PoolConfig<L>>;
  /** Disk images that builders upload to this provider, by name. */
  readonly diskImages: ReadonlyMap<string, ProviderDiskImage>;
  /** Disk image format that the cloud requires. */
  readonly imageFormat: string | undefined;
  /** Upload settings of disk images; if absent, the defaults of `loadImageUploadSettings` apply. */
  readonly imageUpload?: ImageUploadSettings | undefined;
  /** The section as read. Two configurations are equal if their sections are. */
  readonly section: JsonObject;
}

export interface PoolConfig<L extends LabelConfig = LabelConfig> {
  readonly name: string;
  /** Priority; lower values are served first. Default: the provider's priority. */
  readonly priority: number;
  /** Maximum number of nodes; `Infinity` for no limit. A value of 0 or less disables the pool. */
  readonly maxServers: number;
  /** Further limits by resource name (`cores`, `ram` in MiB, `volumes`, `volume-gb`, …). */
  readonly limits: Readonly<Record<string, number>>;
  /** True if the pool ignores the limits that the cloud reports. Default false. */
  readonly ignoreProviderQuota?: boolean | undefined;
  readonly nodeAttributes: JsonObject;
  readonly availabilityZones: readonly string[];
  readonly labels: ReadonlyMap<string, L>;
}

export type ImageReference =
  { readonly kind: 'diskimage'; readonly name: string } | { readonly kind: 'cloud-image'; readonly name: string };

/** Login settings of a node. */
export interface Connection {
  readonly type: string;
  readonly port: number | JsonObject;
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
}

export interface LabelConfig {
  readonly name: string;
  readonly image: ImageReference;
  /**
   * Alternative machine types (flavors, sizes, hardware profiles) in the order of preference. Absent or empty: nodes
   * have the one machine type that the driver derives from the label.
   */
  readonly machineTypes?: readonly string[] | undefined;
  readonly connection: Connection;
  /** True if the launcher waits for the login and reads the host keys before the node becomes ready. */
  readonly hostKeyChecking: boolean;
  /** True if the launcher logs the console of an instance whose login never responds. */
  readonly consoleLog: boolean;
}

export interface ProviderDiskImage {
  readonly name: string;
  readonly pause: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  /** Tests of its uploads to this provider; absent for none. */
  readonly tests?: ImageTests | undefined;
}

/** A test that boots a build in a virtual machine on the builder's host. */
export interface BootTestConfig {
  /** Time until the login answers. */
  readonly timeoutMs: number;
  /** Memory of the machine, MiB. */
  readonly memory: number;
  readonly cpus: number;
  /** False to emulate the machine even if the host has KVM. */
  readonly kvm: boolean;
  /** Command line for the shell of the machine; undefined for none. */
  readonly command: string | undefined;
  /** Limit of the command. */
  readonly commandTimeoutMs: number;
}

/** An image that another program makes. Exactly one of `url` and `path` is set. */
export interface ImageSourceConfig {
  readonly url: string | undefined;
  readonly path: string | undefined;
  /** Checksum of the file as it is stored, or the URL of a file with it; undefined for none. */
  readonly sha256: string | undefined;
  /** Format of the image in the file; undefined if the name of the file ends with it. */
  readonly format: string | undefined;
  /** Limit of the size of the file, and of the disk in it. */
  readonly maxBytes: number;
}

/** A disk image of the configuration file, merged with its parents. */
export interface DiskImageConfig {
  readonly name: string;
  readonly abstract: boolean;
  readonly parent: string | undefined;
  readonly formats: readonly string[];
  readonly keepFormats: readonly string[];
  readonly deleteAfterUpload: boolean;
  readonly rebuildAgeMs: number;
  readonly release: string | undefined;
  readonly buildTimeoutMs: number;
  readonly elements: readonly string[];
  readonly envVars: Readonly<Record<string, string>>;
  readonly pause: boolean;
  readonly username: string;
  readonly pythonPath: string;
  readonly shellType: string | undefined;
  readonly dibCmd: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Absent: builds are not booted before they are uploaded. */
  readonly bootTest?: BootTestConfig | undefined;
  /** Absent: `dibCmd` builds the image. */
  readonly source?: ImageSourceConfig | undefined;
  /** Tests of uploads to all providers that do not set their own; absent for none. */
  readonly tests?: ImageTests | undefined;
}

/** Data and callbacks for creating a provider's configuration from its section. */
export interface ProviderConfigContext {
  /** Disk images of the file, merged with their parents. */
  readonly diskImages: ReadonlyMap<string, DiskImageConfig>;
  /** Names of the top-level labels. */
  readonly labels: ReadonlySet<string>;
  /**
   * Reports a problem at a position below the section, e.g. `['pools', 0, 'labels', 1, 'cloud-image']`. Can be called
   * repeatedly; one problem is enough to reject the configuration.
   */
  problem(path: readonly (string | number)[], problem: { readonly expected: string; readonly hint?: string }): void;
  /**
   * Reports why the provider cannot be served although its section is valid, e.g. because a credentials file is
   * missing. The configuration is accepted. Absent if the program ignores such reports.
   */
  unserved?(path: readonly (string | number)[], reason: string): void;
}
