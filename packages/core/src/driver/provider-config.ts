/** Configuration of a provider as the launcher and the frameworks see it. Drivers extend these with their own fields. */

import type { JsonObject } from '../model/json.js';
import type { ImageUploadSettings } from './image-settings.js';

export interface ProviderConfig<L extends LabelConfig = LabelConfig> {
  readonly name: string;
  /** Name of the driver, as in the configuration. */
  readonly driver: string;
  /** Lower is served first. */
  readonly priority: number;
  /** Requests handled at once; Infinity: unlimited. */
  readonly maxConcurrency: number;
  readonly launchRetries: number;
  readonly launchTimeoutMs: number;
  /** Until login answers. */
  readonly bootTimeoutMs: number;
  /** API calls per second; Infinity: unlimited. */
  readonly callsPerSecond: number;
  readonly pools: ReadonlyMap<string, PoolConfig<L>>;
  /** Disk images that builders upload to this provider, by name. */
  readonly diskImages: ReadonlyMap<string, ProviderDiskImage>;
  /** Format that the cloud wants, for the disk images. */
  readonly imageFormat: string | undefined;
  /** How disk images are uploaded; absent: as `loadImageUploadSettings` says by default. */
  readonly imageUpload?: ImageUploadSettings | undefined;
  /** The section as it was read; two configurations are the same when these are. */
  readonly section: JsonObject;
}

export interface PoolConfig<L extends LabelConfig = LabelConfig> {
  readonly name: string;
  /** Lower is served first; the provider's unless set. */
  readonly priority: number;
  /** Infinity: unlimited; 0 or less: the pool is disabled. */
  readonly maxServers: number;
  /** Further limits by resource name (`cores`, `ram` in MiB, `volumes`, `volume-gb`, …). */
  readonly limits: Readonly<Record<string, number>>;
  /** The limits that the cloud reports do not count for this pool. Default: they do. */
  readonly ignoreProviderQuota?: boolean | undefined;
  readonly nodeAttributes: JsonObject;
  readonly availabilityZones: readonly string[];
  readonly labels: ReadonlyMap<string, L>;
}

export type ImageReference =
  { readonly kind: 'diskimage'; readonly name: string } | { readonly kind: 'cloud-image'; readonly name: string };

/** How to log into a node. */
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
  readonly connection: Connection;
  /** Wait for the login and gather host keys before the node is ready. */
  readonly hostKeyChecking: boolean;
  /** Log the console when login never answers. */
  readonly consoleLog: boolean;
}

export interface ProviderDiskImage {
  readonly name: string;
  readonly pause: boolean;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A disk image of the configuration file; its parents are merged in. */
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
}

/** What a driver gets to make a provider's configuration from its section. */
export interface ProviderConfigContext {
  /** The disk images of the file, parents merged. */
  readonly diskImages: ReadonlyMap<string, DiskImageConfig>;
  /** Names of the top-level labels. */
  readonly labels: ReadonlySet<string>;
  /**
   * Reports what is wrong, at a place below the section, e.g. `['pools', 0, 'labels', 1, 'cloud-image']`. Any number of
   * problems can be reported; the configuration is refused when there is one.
   */
  problem(path: readonly (string | number)[], problem: { readonly expected: string; readonly hint?: string }): void;
  /**
   * Reports why the provider cannot be served although its section is right, e.g. a file of credentials that is missing. The
   * configuration is accepted. Absent if the program does not care.
   */
  unserved?(path: readonly (string | number)[], reason: string): void;
}
