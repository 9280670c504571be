/** A started provider on a virtual clock, with helpers for launches and cleanups. */

import type { VirtualClock } from '@nodepool/core/testing';
import {
  TaskSupervisor,
  silentLogger,
  type ApiCall,
  type Driver,
  type JsonValue,
  type LaunchedInstance,
  type NodeCleanup,
  type NodeLaunch,
  type Provider,
  type ProviderConfig,
  type RequestInfo,
} from '../../src/index.js';
import { seededRandom } from '../../src/testing/index.js';
import { tinyConfig } from './tiny-drivers.js';

/** Id of the installation that nodes and images of these tests belong to. */
export const INSTALLATION = '0123456789abcdef';

const request: RequestInfo = {
  id: '200-0000000001',
  labels: ['small'],
  requestor: 'zuul',
  requestorData: null,
  relativePriority: 0,
  eventId: null,
  createdTime: null,
  tenantName: null,
};

export interface Progress {
  readonly externalId?: unknown;
  readonly machine: JsonValue;
}

export class ProviderHarness {
  readonly apiCalls: ApiCall[] = [];
  /** Failures of background work; must stay empty. */
  readonly failures: unknown[] = [];
  readonly saves: Progress[] = [];
  readonly provider: Provider;
  readonly tasks: TaskSupervisor;
  private nextNode = 1;

  constructor(
    readonly clock: VirtualClock,
    driver: Driver,
    config: Partial<ProviderConfig> = {},
  ) {
    this.provider = driver.getProvider(tinyConfig(config));
    this.tasks = new TaskSupervisor(clock, (_name, error) => this.failures.push(error));
  }

  async start(): Promise<this> {
    const { clock, tasks } = this;
    await this.provider.start({
      clock,
      random: seededRandom(1),
      log: silentLogger,
      tasks,
      onApiCall: (call) => this.apiCalls.push(call),
    });
    return this;
  }

  /** Starts a launch, which proceeds only while the clock moves. */
  launch(changes: Partial<NodeLaunch> & { attempt?: string } = {}): Watched<LaunchedInstance> {
    const { attempt, ...rest } = changes;
    const nodeId = changes.nodeId ?? String(this.nextNode++).padStart(10, '0');
    const handler = this.provider.getRequestHandler('main', request);
    return watch(
      handler.launch({
        signal: new AbortController().signal,
        deadline: this.clock.monotonic() + 600_000,
        log: silentLogger,
        nodeId,
        hostname: `node-${nodeId}`,
        pool: 'main',
        label: 'small',
        availabilityZone: undefined,
        imageExternalId: undefined,
        tags: {
          nodepool_node_id: nodeId,
          nodepool_provider_name: 'tiny',
          nodepool_pool_name: 'main',
          nodepool_installation: INSTALLATION,
          nodepool_launch_attempt: attempt ?? `attempt-${nodeId}`,
        },
        saved: null,
        externalId: null,
        save: async (progress) => void this.saves.push(progress),
        ...rest,
      }),
    );
  }

  /** Runs the clock until the promise settles. */
  async finish<T>(watched: Watched<T>, limitMs = 3_600_000): Promise<T> {
    if (!(await this.clock.runUntil(() => watched.settled, limitMs))) throw new Error('it does not end');
    return watched.promise;
  }

  /** Cleans up the node and waits for the end. */
  async cleanUp(nodeId: string, changes: Partial<NodeCleanup> = {}): Promise<void> {
    await this.provider.cleanupNode(this.cleanup(nodeId, changes));
    await this.finish(watch(this.provider.waitForNodeCleanup(nodeId)));
  }

  cleanup(nodeId: string, changes: Partial<NodeCleanup> = {}): NodeCleanup {
    return {
      signal: new AbortController().signal,
      deadline: this.clock.monotonic() + 600_000,
      log: silentLogger,
      nodeId,
      pool: 'main',
      externalId: null,
      installation: INSTALLATION,
      launchAttempt: `attempt-${nodeId}`,
      saved: null,
      save: async (progress) => void this.saves.push(progress),
      ...changes,
    };
  }

  call(): { signal: AbortSignal; deadline: number; log: typeof silentLogger } {
    return { signal: new AbortController().signal, deadline: this.clock.monotonic() + 60_000, log: silentLogger };
  }
}

/** A promise with its state, whose rejection is never unhandled. */
export interface Watched<T> {
  readonly promise: Promise<T>;
  readonly settled: boolean;
}

export function watch<T>(promise: Promise<T>): Watched<T> {
  const watched = { promise, settled: false };
  const settle = (): void => {
    watched.settled = true;
  };
  promise.then(settle, settle);
  return watched;
}
