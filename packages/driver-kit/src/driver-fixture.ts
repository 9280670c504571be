/** Input of the contract tests: the driver, a cloud to run it on, and the abilities of that cloud. */

import type { Adapter, Driver, ExternalId, JsonObject, ProviderConfig, SiteChoice } from '@nodepool/core';
import type { SimulatedBackingNodes } from './simulated-backing.js';
import type { SimulatedLogins } from './simulated-logins.js';
import type { TestTime } from './time.js';

/** Driver calls that can be made to fail. `any` is the next call of any kind; `list` is one page of instances. */
export type FaultyOperation = 'any' | 'create' | 'delete' | 'list' | 'upload';

export type FaultKind =
  /** Responds with an internal error (500, 503) and has no effect. */
  | 'refuse'
  /** Takes effect, and responds with an internal error (500, 503). */
  | 'fail-after'
  /** Takes effect, but the connection breaks before the response. */
  | 'lose-answer'
  /** Has no effect and never responds. */
  | 'hang'
  /** Responds with a rate limit error (429), with a wait time if the cloud gives one. */
  | 'throttle'
  /** Rejects the credentials (401). */
  | 'auth'
  /** Responds that the state of the resource does not allow the operation at the moment (409), and has no effect. */
  | 'conflict'
  /** Responds in the format of the cloud that there is no such object (404), although there is, and has no effect. */
  | 'not-found'
  /** Responds that the account's quota is exceeded. */
  | 'quota'
  /** Responds that the cloud has no capacity at the moment. */
  | 'capacity'
  /** Rejects the request as permanently invalid (400). */
  | 'invalid'
  /** Has no effect; a proxy in front of the cloud responds with 502 and a page that repeats the request’s headers. */
  | 'echo'
  /** Has no effect; a proxy in front of the cloud responds with 404 and a page of its own. */
  | 'proxy-404'
  /** Has no effect; a proxy in front of the cloud responds with 200 and a page of its own, which is not JSON. */
  | 'proxy-200'
  /** Has no effect; a proxy in front of the cloud responds with 200 and JSON of its own: an object. */
  | 'proxy-json';

/** A fault to inject into future calls. */
export interface PlannedFault {
  readonly operation: FaultyOperation;
  readonly kind: FaultKind;
  /** Number of calls of the operation that succeed before the faulty one. */
  readonly skip: number;
}

/**
 * An optional feature of a test cloud. A rule that requires a missing ability is skipped with that reason.
 * `fault:<operation>:<kind>` means that `TestCloud.plan` accepts such faults.
 */
export type Ability =
  /** `TestCloud.http`: the API of the cloud is HTTP. */
  | 'http'
  /** `TestCloud.replaceCredentials`. */
  | 'replaced-credentials'
  /** `TestCloud.makeAdapter`: the driver uses the state-machine framework. */
  | 'adapter'
  /** `TestCloud.resources`. */
  | 'resources'
  /** `TestCloud.addForeignInstances`. */
  | 'foreign-instances'
  /** `TestCloud.setTimes`: boot and deletion times. */
  | 'times'
  /** `TestCloud.setListLag`. */
  | 'list-lag'
  /** `TestCloud.secrets`. */
  | 'secrets'
  /** `TestCloud.reuseIds`. */
  | 'reused-ids'
  /** `TestCloud.breakInstance`. */
  | 'break-instance'
  /** `TestCloud.destroyInstance`. */
  | 'destroy-instance'
  /** `TestCloud.copyInstance`: the cloud has a way to copy instances with their tags. */
  | 'instance-copies'
  /** `TestCloud.setQuota`, and the driver reports the limits. */
  | 'quota'
  /** The driver supports zones. */
  | 'zones'
  /** The driver manages images. */
  | 'images'
  /** The cloud verifies image checksums. */
  | 'image-checksums'
  /** `TestCloud.setImageTime`. */
  | 'image-times'
  /** `TestCloud.copyImage`: the cloud has a way to copy images with their tags. */
  | 'image-copies'
  /** The section has a label that uses an uploaded image, see `TestCloud.imageLabel`. */
  | 'image-labels'
  /** The section has a label with several machine types, see `TestCloud.machineTypeLabel`. */
  | 'machine-types'
  | `fault:${FaultyOperation}:${FaultKind}`;

/** An existing cloud resource that the driver created, or the cloud on its behalf. */
export interface CloudResource {
  /** `instance`, `image`, or any other kind that the driver's `listResources` returns. */
  readonly kind: string;
  /** In the driver's format. Required for instances and images. */
  readonly externalId?: ExternalId;
  readonly tags: Readonly<Record<string, string>>;
}

export type ExistenceCheck = () => boolean | Promise<boolean>;

/** Controls of a cloud whose API is HTTP. `TestCloud.clearFaults` ends their effects. */
export interface HttpControls {
  /** Host and port of the API in messages, e.g. `127.0.0.1:8080`. */
  readonly host: string;
  /** Redirects the first message of each call to its own address. */
  moveCalls(status: number): void;
  /** Redirects all calls to another host. */
  redirectTo(url: string): void;
  /** Answers all creations of instances with this status and the address of the call in `Location`. */
  redirectCreations(status: number): void;
  /** Answers the next call with a text that does not end. */
  answerEndlessly(): void;
  /**
   * Moves the clock of the cloud ahead by `aheadMs`, and throttles the next call (429 or 503) with a date in
   * `Retry-After` that is `waitMs` later on this clock.
   */
  throttleUntil(waitMs: number, aheadMs: number): void;
}

/** An empty cloud for one test case: a simulated one, or a real account that has no other user during the test. */
export interface TestCloud {
  /** The time that driver and cloud share. */
  readonly time: TestTime;
  /** A section of `providers`. The tests use its first pool and that pool's first label. */
  readonly section: JsonObject;
  /** Creates a driver as a new process would load it. It shares only the cloud with earlier drivers. */
  makeDriver(): Driver;

  /** Creates the driver's adapter as a new process would. `config` is from `getProviderConfig` of a `makeDriver()`. */
  makeAdapter?(config: ProviderConfig): Adapter;
  /** Returns the existing resources that drivers created, even if the cloud's listings do not show them. */
  resources?(): readonly CloudResource[] | Promise<readonly CloudResource[]>;
  /** Creates this many instances without our tags, which must fill several pages if the cloud's listings have pages. */
  addForeignInstances?(count: number): void | Promise<void>;
  /** Sets the boot and deletion time of instances (ms of `time`). */
  setTimes?(times: { readonly bootMs: number; readonly deleteMs: number }): void | Promise<void>;
  /** Sets how long the cloud processes image data before the image can be used (ms of `time`). */
  setImageTime?(ms: number): void | Promise<void>;
  /** Sets how long listings lag behind creations and deletions (ms of `time`). */
  setListLag?(ms: number): void | Promise<void>;
  /** Gives the ids of instances that no longer exist to new ones at once. Called before the first provider starts. */
  reuseIds?(): void | Promise<void>;
  /** Puts the instance into a failed state, e.g. ERROR. */
  breakInstance?(externalId: ExternalId): void | Promise<void>;
  /** Removes the instance, as if its host had failed. */
  destroyInstance?(externalId: ExternalId): void | Promise<void>;
  /**
   * Copies an instance with all tags that the cloud copies, as another person does, e.g. by restoring a backup. Returns
   * a function that tells if the copy exists.
   */
  copyInstance?(externalId: ExternalId): ExistenceCheck | Promise<ExistenceCheck>;
  /**
   * Creates an image with all tags that the cloud copies, as another person does, e.g. by a snapshot of a node. Returns
   * a function that tells if the copy exists.
   */
  copyImage?(externalId: ExternalId): ExistenceCheck | Promise<ExistenceCheck>;
  /** Sets the account's instance quota. */
  setQuota?(limit: { readonly instances: number }): void | Promise<void>;
  /** Injects the fault once. */
  plan?(fault: PlannedFault): void | Promise<void>;
  /** Removes planned faults that have not occurred. With it, rules try many faults on one cloud, which saves time. */
  clearFaults?(): void | Promise<void>;
  /** Pool and label that use an uploaded image. */
  readonly imageLabel?: { readonly pool: string; readonly label: string };
  /** Pool and label with at least two `machineTypes` whose resources differ. */
  readonly machineTypeLabel?: { readonly pool: string; readonly label: string };

  /** File content that the cloud accepts as an image. Default: any bytes. */
  readonly imageContent?: Buffer;

  /**
   * The first configuration of a driver that has a `siteGuide`: its settings, and choices that the cloud does not list.
   */
  readonly site?: {
    readonly settings: Readonly<Record<string, string>>;
    readonly chosen?: Readonly<Partial<Record<SiteChoice, string>>>;
    /** Further keys of the section, e.g. the address of the simulated cloud. */
    readonly keys?: JsonObject;
  };

  /** Logins of the machines of a driver that declares machines (`DriverFixture.supplies`). */
  readonly logins?: SimulatedLogins;

  /** Backing nodes of a driver whose nodes are their slots (`DriverFixture.backed`). */
  readonly backing?: SimulatedBackingNodes;

  readonly http?: HttpControls;

  /** Makes the cloud refuse the credentials in use, and stores others where the driver reads them. */
  replaceCredentials?(): void | Promise<void>;

  /** Returns the passwords, keys and tokens that drivers have sent to the cloud so far. */
  secrets?(): readonly string[];

  /** Shuts the cloud down with all its resources. */
  close(): void | Promise<void>;
}

/** Sections of `providers` for the tests of schema and configuration. */
export interface ConfigurationExamples {
  /** Valid sections. Together they contain every key of the schema. */
  readonly accepted: readonly JsonObject[];
  /** Sections that only the driver can reject, with the problem's path, e.g. `['pools', 0, 'labels', 0, 'size']`. */
  readonly refused: readonly {
    readonly why: string;
    readonly section: JsonObject;
    readonly at: readonly (string | number)[];
  }[];
}

/** A driver and all input of its contract tests. */
export interface DriverFixture {
  /** Used in test titles, e.g. `example, over HTTP`. */
  readonly name: string;
  /** Folder of the driver's package, for the rules about its `package.json`. */
  readonly packageFolder: string;
  readonly can: readonly Ability[];
  /** True if the driver creates no instances and declares machines to `nodeSupply`. */
  readonly supplies?: boolean;
  /** Settings of the first label, if the nodes of the driver are slots of backing nodes. */
  readonly backed?: {
    /** Slots of a backing node. */
    readonly slots: number;
    /** Time after which a backing node without nodes is released, milliseconds. */
    readonly graceMs: number;
  };
  readonly configuration: ConfigurationExamples;
  /** Opens a cloud. Called at least once for every case. */
  open(): TestCloud | Promise<TestCloud>;
  /** Reasons why the driver is exempt from a rule, by rule id. The skipped test shows the reason. */
  readonly exempt?: Readonly<Record<string, string>>;
}
