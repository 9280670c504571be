/** What a driver's tests give to the kit: the driver, a cloud to use it on, and what that cloud can be made to do. */

import type { Adapter, Driver, ExternalId, JsonObject, ProviderConfig } from '@nodepool/core';
import type { TestTime } from './time.js';

/** Calls of a driver that can be made to go wrong. `any`: whichever comes. `list` is one page of the list of instances. */
export type FaultyOperation = 'any' | 'create' | 'delete' | 'list' | 'upload';

export type FaultKind =
  /** Answered with an internal error (500, 503); nothing was done. */
  | 'refuse'
  /** Takes effect; the connection breaks, or 500 is answered, instead of the answer. */
  | 'lose-answer'
  /** Nothing is done and nothing is answered, ever. */
  | 'hang'
  /** One call too many (429), with a time to wait where the cloud gives one. */
  | 'throttle'
  /** The credentials are refused (401). */
  | 'auth'
  /** More than the account may have. */
  | 'quota'
  /** The cloud has no room at the moment. */
  | 'capacity'
  /** What is asked for is refused for good (400). */
  | 'invalid';

/** A fault that the next calls meet. */
export interface PlannedFault {
  readonly operation: FaultyOperation;
  readonly kind: FaultKind;
  /** Calls of the operation that pass before the faulty one. */
  readonly skip: number;
}

/**
 * What a cloud can be made to do, besides being used. A rule that needs what a cloud cannot do is skipped, and says so.
 * `fault:<operation>:<kind>`: `TestCloud.plan` takes such faults.
 */
export type Ability =
  /** `TestCloud.makeAdapter`: the driver is on the state-machine framework. */
  | 'adapter'
  /** `TestCloud.resources`. */
  | 'resources'
  /** `TestCloud.addForeignInstances`. */
  | 'foreign-instances'
  /** `TestCloud.setTimes`: boot, deletion. */
  | 'times'
  /** `TestCloud.setListLag`. */
  | 'list-lag'
  /** `TestCloud.breakInstance`. */
  | 'break-instance'
  /** `TestCloud.destroyInstance`. */
  | 'destroy-instance'
  /** `TestCloud.setQuota`, and the driver tells the limits. */
  | 'quota'
  /** The driver offers zones. */
  | 'zones'
  /** The driver manages images. */
  | 'images'
  /** The cloud verifies the checksums of images. */
  | 'image-checksums'
  /** `TestCloud.setImageTime`. */
  | 'image-times'
  /** Labels can be made from uploaded images; the section has such a label, see `TestCloud.imageLabel`. */
  | 'image-labels'
  | `fault:${FaultyOperation}:${FaultKind}`;

/** Something that exists in the cloud and that the driver made (or its cloud, for it). */
export interface CloudResource {
  /** `instance` for instances, `image` for images; others as the driver calls them in `listResources`. */
  readonly kind: string;
  /** As the driver writes it; needed of instances and images. */
  readonly externalId?: ExternalId;
  readonly tags: Readonly<Record<string, string>>;
}

/** A cloud with nothing in it, for one case. Simulated, or a real account that is used for nothing else meanwhile. */
export interface TestCloud {
  /** The time that driver and cloud live in. */
  readonly time: TestTime;
  /** A section of `providers`, with a pool and a label in it; the first of each are used. */
  readonly section: JsonObject;
  /** A driver, as a process that was just started would load it: all that it shares with drivers made before is the cloud. */
  makeDriver(): Driver;

  /** The driver's adapter, again as a new process has it. `config` comes from `getProviderConfig` of a `makeDriver()`. */
  makeAdapter?(config: ProviderConfig): Adapter;
  /** What exists right now and was made by drivers, whatever the cloud's lists say. */
  resources?(): readonly CloudResource[] | Promise<readonly CloudResource[]>;
  /** Makes so many instances without our tags; with as many, the cloud's list must have several pages, if it has pages. */
  addForeignInstances?(count: number): void | Promise<void>;
  /** From now on, instances need so long to boot, and to be gone. Milliseconds of `time`. */
  setTimes?(times: { readonly bootMs: number; readonly deleteMs: number }): void | Promise<void>;
  /** From now on, the cloud processes the data of an image for this long before the image can be used. Milliseconds of `time`. */
  setImageTime?(ms: number): void | Promise<void>;
  /** From now on, lists do not know for so long what was made or has gone. */
  setListLag?(ms: number): void | Promise<void>;
  /** The instance fails, e.g. goes to the state ERROR. */
  breakInstance?(externalId: ExternalId): void | Promise<void>;
  /** The instance is taken away, as by a host that breaks down. */
  destroyInstance?(externalId: ExternalId): void | Promise<void>;
  /** The account may have so many instances from now on. */
  setQuota?(limit: { readonly instances: number }): void | Promise<void>;
  /** The next calls meet this fault, once. */
  plan?(fault: PlannedFault): void | Promise<void>;
  /** Pool and label of the section that is made from an uploaded image. */
  readonly imageLabel?: { readonly pool: string; readonly label: string };

  /** What a file holds that the cloud takes as an image. Default: any bytes. */
  readonly imageContent?: Buffer;

  /** Ends the cloud, with whatever is still in it. */
  close(): void | Promise<void>;
}

/** Sections of `providers` to check schema and configuration with. */
export interface ConfigurationExamples {
  /** Right ones. Together they have every key that the schema knows. */
  readonly accepted: readonly JsonObject[];
  /** Wrong in ways that only the driver knows, and where that must be told, e.g. `['pools', 0, 'labels', 0, 'size']`. */
  readonly refused: readonly {
    readonly why: string;
    readonly section: JsonObject;
    readonly at: readonly (string | number)[];
  }[];
}

/** A driver, and all that the contract tests need. */
export interface DriverSubject {
  /** For titles, e.g. `example, over HTTP`. */
  readonly name: string;
  /** Folder of the driver's package, for the rules about its package.json. */
  readonly packageFolder: string;
  readonly can: readonly Ability[];
  readonly configuration: ConfigurationExamples;
  /** Opens a cloud. Called for every case, some open several. */
  open(): TestCloud | Promise<TestCloud>;
  /** Rules that this driver cannot keep, by id, each with the reason, which the skipped test shows. */
  readonly exempt?: Readonly<Record<string, string>>;
}
