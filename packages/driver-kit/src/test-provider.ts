/** A driver's provider in its own process, for cloud-specific tests. */

import {
  isDriverError,
  type ApiCall,
  type Call,
  type Driver,
  type DriverError,
  type ExternalId,
  type ImageTags,
  type ImageUploadRequest,
  type InstanceTags,
  type JsonObject,
  type LaunchedInstance,
  type Logger,
  type NodeCleanup,
  type NodeLaunch,
  type Provider,
  type ProviderConfig,
  type Resource,
  type SuppliedMachine,
} from '@nodepool/core';
import { ProviderProcess } from './process.js';
import { callOn, imageTags, imageUpload, instanceTags, nodeCleanup, nodeLaunch, requestFor } from './requests.js';
import type { SimulatedBackingNodes } from './simulated-backing.js';
import type { SimulatedLogins } from './simulated-logins.js';
import type { TestTime } from './time.js';

const FIRST_NODE = '0000000001';
/** Time limit for a launch, deletion or upload (ms). */
const DEADLINE_MS = 3_600_000;
const WAIT_LIMIT_MS = 2 * DEADLINE_MS;

export interface TestProviderOptions {
  /** The time that driver and cloud share. */
  readonly time: TestTime;
  readonly driver: Driver;
  /** A section of `providers` with a pool and a label. */
  readonly section: JsonObject;
  /** Logins of machines, for a driver that declares machines. */
  readonly logins?: SimulatedLogins;
  /** Backing nodes, for a driver whose nodes are their slots. */
  readonly backing?: SimulatedBackingNodes;
  /** Receives what the driver logs. Default: nothing is logged. */
  readonly log?: Logger;
  /** Properties to override in every launch, e.g. the zone. */
  readonly launch?: Partial<NodeLaunch>;
}

/**
 * Calls a provider as a launcher and a builder do. Awaiting a method advances the clock; the `begin` methods return at
 * once and continue while the clock advances.
 */
export class TestProvider {
  private readonly process: ProviderProcess;

  /** Throws if the driver rejects the section. */
  constructor(private readonly options: TestProviderOptions) {
    const { driver, section, time, logins, backing, log } = options;
    this.process = new ProviderProcess(driver, section, time.clock, logins, log, backing);
  }

  get provider(): Provider {
    return this.process.provider;
  }

  get config(): ProviderConfig {
    return this.process.config;
  }

  /** The machines that the provider declared last; undefined if it has not declared any. */
  get machines(): readonly SuppliedMachine[] | undefined {
    return this.process.machines;
  }

  /** Remote calls that the driver has reported. */
  get apiCalls(): ApiCall[] {
    return this.process.apiCalls;
  }

  get failures(): readonly unknown[] {
    return this.process.failures;
  }

  async start(): Promise<this> {
    await this.end(this.provider.start(this.process.context));
    return this;
  }

  async stop(): Promise<void> {
    await this.end(this.process.stop());
  }

  call(timeoutMs = DEADLINE_MS): Call {
    return callOn(this.options.time.clock, timeoutMs);
  }

  /** Returns the tags of the instance of a node. */
  tagsOf(nodeId: string, attempt?: string): InstanceTags {
    return instanceTags(this.config, nodeId, attempt);
  }

  /** Tags of the image that `upload` creates. */
  get imageTags(): ImageTags {
    return imageTags(this.config);
  }

  /** Starts a launch for a request of these labels; by default, of the launch's own label. */
  begin(nodeId = FIRST_NODE, change: Partial<NodeLaunch> = {}, labels?: readonly string[]): Promise<LaunchedInstance> {
    const launch = nodeLaunch(this.config, this.call(), nodeId, { ...this.options.launch, ...change });
    return this.provider.getRequestHandler(launch.pool, requestFor(...(labels ?? [launch.label]))).launch(launch);
  }

  launch(...args: Parameters<TestProvider['begin']>): Promise<LaunchedInstance> {
    return this.end(this.begin(...args));
  }

  /** Resolves with the error of a launch. Rejects if the launch succeeds. */
  failedLaunch(...args: Parameters<TestProvider['begin']>): Promise<DriverError> {
    return failureOf(this.launch(...args));
  }

  /** Starts the deletion of all resources of a node. */
  async beginCleanUp(
    externalId: ExternalId | null,
    nodeId = FIRST_NODE,
    change: Partial<NodeCleanup> = {},
  ): Promise<void> {
    await this.provider.cleanupNode(nodeCleanup(this.config, this.call(), nodeId, externalId, change));
    await this.provider.waitForNodeCleanup(nodeId);
  }

  cleanUp(...args: Parameters<TestProvider['beginCleanUp']>): Promise<void> {
    return this.end(this.beginCleanUp(...args));
  }

  /** Runs one cleanup round, which deletes the resources that `leaked` accepts. Resolves with all checked ones. */
  async cleanUpRound(leaked: (resource: Resource) => boolean = () => false): Promise<readonly Resource[]> {
    let offered: readonly Resource[] = [];
    const round = {
      leaked: async (resources: readonly Resource[]) => {
        offered = resources;
        return resources.filter(leaked);
      },
    };
    await this.end(this.provider.cleanupLeakedResources(round, this.call()));
    return offered;
  }

  /** Uploads a file; `change` overrides properties of the upload. */
  upload(file: string, change: Partial<ImageUploadRequest> = {}): Promise<ExternalId> {
    const { images } = this.provider;
    if (images === undefined) throw new Error('the provider has no images');
    return this.end(images.uploadImage(imageUpload(this.config, this.call(), file, change)));
  }

  /** Advances the clock until the promise settles. */
  async end<T>(promise: Promise<T>): Promise<T> {
    let ended = false;
    const done = (): void => {
      ended = true;
    };
    promise.then(done, done);
    const inTime = await this.options.time.until(() => ended, WAIT_LIMIT_MS);
    if (!inTime) throw new Error(`it did not end within ${WAIT_LIMIT_MS / 3_600_000} hours`);
    return promise;
  }

  /** Returns the number of remote calls of an operation. */
  count(operation: string, method = 'GET'): number {
    return this.apiCalls.filter((call) => call.operation === operation && call.method === method).length;
  }
}

/** Resolves with the `DriverError` that the promise rejects with. Rejects if it resolves, or with any other error. */
export async function failureOf(promise: Promise<unknown>): Promise<DriverError> {
  try {
    await promise;
  } catch (error) {
    if (isDriverError(error)) return error;
    throw error;
  }
  throw new Error('it did not fail');
}
