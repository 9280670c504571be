/** A cloud under test and the provider processes that use it. */

import assert from 'node:assert/strict';
import {
  isDriverError,
  type Call,
  type DriverError,
  type DriverErrorCode,
  type ExternalId,
  type Instance,
  type InstanceTags,
  type JsonObject,
  type JsonValue,
  type LaunchedInstance,
  type NodeCleanup,
  type NodeLaunch,
  type NodeRequestHandler,
  type Provider,
} from '@nodepool/core';
import { describeCalls, expectCode, failureWith, lacks, notDriverError } from './expectations.js';
import { ProviderProcess } from './process.js';
import { recordingLogger } from './recording-logger.js';
import { callOn, instanceTags, nodeCleanup, nodeLaunch, requestFor } from './requests.js';
import type { CloudResource, DriverFixture, FaultKind, FaultyOperation, TestCloud } from './driver-fixture.js';
import { watch, type Watched } from './watched.js';

/** Time after which a launch or deletion, and the test that started it, times out (ms). */
export const DEADLINE_MS = 600_000;
const WAIT_LIMIT_MS = 2 * DEADLINE_MS;

/** A node to launch an instance for. */
export interface TestNode {
  readonly id: string;
  readonly tags: InstanceTags;
}

export interface SavedProgress {
  readonly externalId: ExternalId | null;
  readonly machine: JsonValue;
}

/** A launch in progress and the last state that it saved. */
export interface TestLaunch extends Watched<LaunchedInstance> {
  readonly node: TestNode;
  readonly saved: SavedProgress | undefined;
}

export class ProviderHarness {
  private readonly processes: ProviderProcess[] = [];
  private readonly endings: (() => Promise<void>)[] = [];
  private nodes = 0;
  /** Texts of all log lines of the providers. */
  readonly logged: string[] = [];
  private readonly log = recordingLogger(this.logged);

  constructor(
    readonly fixture: DriverFixture,
    readonly cloud: TestCloud,
  ) {}

  /** The most recently created process. */
  get process(): ProviderProcess {
    const process = this.processes.at(-1);
    if (process === undefined) throw new Error('no process was started in this harness');
    return process;
  }

  get provider(): Provider {
    return this.process.provider;
  }

  /** Creates a process without starting its provider. `change` replaces keys of the section. */
  make(change: JsonObject = {}): ProviderProcess {
    return this.makeOf({ ...this.cloud.section, ...change });
  }

  /** Creates a process with another section. */
  makeOf(section: JsonObject): ProviderProcess {
    const { cloud } = this;
    const process = new ProviderProcess(
      cloud.makeDriver(),
      section,
      cloud.time.clock,
      cloud.logins,
      this.log,
      cloud.backing,
    );
    this.processes.push(process);
    return process;
  }

  /** Creates a process and starts its provider. */
  async start(process = this.make()): Promise<ProviderProcess> {
    await this.finish(process.provider.start(process.context));
    return process;
  }

  /** Returns a new node id with its first launch attempt. */
  node(): TestNode {
    this.nodes += 1;
    const id = String(this.nodes).padStart(10, '0');
    return { id, tags: instanceTags(this.process.config, id, String(this.nodes).padStart(32, 'a')) };
  }

  call(timeoutMs?: number, signal?: Call['signal']): Call {
    return { ...callOn(this.cloud.time.clock, timeoutMs, signal), log: this.log };
  }

  /** Starts a launch in the current process. */
  launch(node = this.node(), change: Partial<NodeLaunch> = {}): TestLaunch {
    const progress: { last: SavedProgress | undefined } = { last: undefined };
    const save = async (saved: SavedProgress): Promise<void> => {
      progress.last = throughJson(saved);
    };
    const launch = nodeLaunch(this.process.config, this.call(DEADLINE_MS), node.id, {
      tags: node.tags,
      save,
      ...change,
    });
    const handler = this.provider.getRequestHandler(launch.pool, requestFor(launch.label));
    const watched = watch(this.recorded(launch, handler));
    return {
      node,
      get settled() {
        return watched.settled;
      },
      get saved() {
        return progress.last;
      },
    };
  }

  /** Keeps the record of the node up to date that a launcher would write. */
  private async recorded(launch: NodeLaunch, handler: NodeRequestHandler): Promise<LaunchedInstance> {
    const { backing } = this.cloud;
    const { nodeId: id, pool, label } = launch;
    backing?.launching({ id, provider: this.process.config.name, pool, type: [label] });
    const instance = await handler.launch(launch);
    backing?.launched(id, instance);
    return instance;
  }

  /** Launches an instance and resolves when it is complete. */
  async launched(node = this.node(), change: Partial<NodeLaunch> = {}): Promise<LaunchedInstance> {
    return this.explained('creation', this.launch(node, change), `the launch of node ${node.id}`);
  }

  /** Deletes all resources of a node in the current process and resolves when they are deleted. */
  async cleanUp(node: TestNode, externalId: ExternalId | null, change: Partial<NodeCleanup> = {}): Promise<void> {
    const cleanup = this.startCleanUp(node, externalId, change);
    await this.explained('deletion', cleanup, `the deletion of node ${node.id}`);
  }

  startCleanUp(node: TestNode, externalId: ExternalId | null, change: Partial<NodeCleanup> = {}): Watched<void> {
    const { provider } = this;
    const cleanup = nodeCleanup(this.process.config, this.call(DEADLINE_MS), node.id, externalId, {
      launchAttempt: node.tags.nodepool_launch_attempt,
      ...change,
    });
    const work = async (): Promise<void> => {
      await provider.cleanupNode(cleanup);
      await provider.waitForNodeCleanup(node.id);
      this.cloud.backing?.deleted(node.id);
    };
    return watch(work());
  }

  /** Behaves like `endOf`, but a timeout error lists the remote calls that the work made. */
  private async explained<T>(kind: 'creation' | 'deletion', watched: Watched<T>, what: string): Promise<T> {
    const before = this.process.apiCalls.length;
    const { process } = this;
    try {
      return await this.endOf(watched, what);
    } catch (error) {
      if (isDriverError(error) && error.code !== 'timeout') throw error;
      const calls = describeCalls(kind, process.apiCalls.slice(before));
      throw new Error(`${error instanceof Error ? error.message : String(error)}; ${calls}`, { cause: error });
    }
  }

  /** Advances the clock until the promise settles and returns its result. */
  finish<T>(promise: Promise<T>, what = 'it'): Promise<T> {
    return this.endOf(watch(promise), what);
  }

  async endOf<T>(watched: Watched<T>, what: string, limitMs?: number): Promise<T> {
    await this.ended(watched, what, limitMs);
    const { settled } = watched;
    if (settled?.ok === true) return settled.value;
    throw failureWith(what, settled?.error);
  }

  /** Advances the clock until the work ends, with or without an error. */
  async ended(watched: Watched<unknown>, what: string, limitMs = WAIT_LIMIT_MS): Promise<void> {
    const done = await this.cloud.time.until(() => watched.settled !== undefined, limitMs);
    assert.ok(done, `${what} has not ended after ${limitMs / 1000} s`);
  }

  /** Resolves with the `DriverError` that the work fails with. Throws if its code is not in a non-empty `codes`. */
  async failureOf(
    work: Promise<unknown> | Watched<unknown>,
    what: string,
    ...codes: readonly DriverErrorCode[]
  ): Promise<DriverError> {
    const watched = work instanceof Promise ? watch(work) : work;
    await this.ended(watched, what);
    const { settled } = watched;
    assert.ok(settled?.ok === false, `${what} did not fail`);
    const { error } = settled;
    assert.ok(isDriverError(error), notDriverError(what, error));
    if (codes.length > 0) expectCode(error, codes, what);
    return error;
  }

  async pass(ms: number): Promise<void> {
    await this.cloud.time.until(() => false, ms);
  }

  /** Returns the provider's existing resources: `resources` of the cloud, or else listed instances with our tags. */
  async existing(): Promise<readonly CloudResource[]> {
    if (this.cloud.resources !== undefined) return this.cloud.resources();
    return (await this.ours()).map(({ externalId, tags }) => ({ kind: 'instance', externalId, tags }));
  }

  async instances(): Promise<readonly CloudResource[]> {
    return (await this.existing()).filter(({ kind }) => kind === 'instance');
  }

  /** Returns the listed instances that have this provider's tags. */
  async ours(): Promise<readonly Instance[]> {
    const listed = await this.finish(this.provider.listNodes(this.call()), 'the list of instances');
    return listed.filter(
      ({ tags, deleted }) => !deleted && tags['nodepool_provider_name'] === this.process.config.name,
    );
  }

  /** Asserts that the provider has no resources left except images. */
  async assertNothingLeft(when: string): Promise<void> {
    const left = (await this.existing()).filter(({ kind }) => kind !== 'image');
    const why = lacks('deletion', this.process.apiCalls) ? 'no delete call reached the cloud, and ' : '';
    const what = left.map(describeResource).join('; ');
    assert.ok(left.length === 0, `${when}, ${why}something is left in the cloud: ${what}`);
  }

  async plan(operation: FaultyOperation, kind: FaultKind, skip = 0): Promise<void> {
    const plan = this.able('plan');
    await plan({ operation, kind, skip });
  }

  /** Returns an optional method of the test cloud. The fixture declares it in `can`. */
  able<K extends keyof TestCloud>(method: K): NonNullable<TestCloud[K]> {
    const { cloud } = this;
    const found = cloud[method];
    if (found === undefined)
      throw new Error(`\`can\` of the fixture contains an ability that needs TestCloud.${method}, which is missing`);
    return typeof found === 'function' ? (found.bind(cloud) as NonNullable<TestCloud[K]>) : found;
  }

  /** Registers a function to run before the cloud is closed. */
  atEnd(end: () => Promise<void>): void {
    this.endings.push(end);
  }

  async close(): Promise<void> {
    await endAll([
      ...this.endings.splice(0),
      ...this.processes.map((process) => () => this.finish(process.stop(), 'the stop of the provider')),
      async () => this.cloud.close(),
    ]);
  }
}

/** Takes all steps in order, also after one that failed. Rejects with the first failure. */
export async function endAll(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

export function describeResource({ kind, externalId, tags }: CloudResource): string {
  const id =
    externalId === undefined ? '' : ` ${typeof externalId === 'string' ? externalId : JSON.stringify(externalId)}`;
  return `${kind}${id} of node ${tags['nodepool_node_id'] ?? '(no tag)'}, attempt ${tags['nodepool_launch_attempt'] ?? '(no tag)'}`;
}

/** Returns the value after a round trip through JSON, as if it had been stored. */
export function throughJson<T extends JsonValue | object>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
