/** A provider of this driver on a simulated cloud, as a launcher would have it. */

import {
  isDriverError,
  silentLogger,
  TaskSupervisor,
  type ApiCall,
  type Call,
  type DriverError,
  type ExternalId,
  type ImageUploadRequest,
  type JsonObject,
  type LaunchedInstance,
  type NodeLaunch,
  type Provider,
  type RequestInfo,
  type Resource,
} from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { driver } from '../src/index.js';
import { section, sectionFor, ZONE, type OpenCloud } from './cloud.js';

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

/** A process with one provider. What it begins ends within simulated time. */
export class TestProvider {
  readonly apiCalls: ApiCall[] = [];
  readonly provider: Provider;

  constructor(
    private readonly open: OpenCloud,
    providerSection: JsonObject = section(),
  ) {
    const config = driver.getProviderConfig(sectionFor(open.cloud, providerSection), {
      diskImages: new Map(),
      labels: new Set(['small']),
      problem: (path, { expected }) => {
        throw new Error(`${path.join('.')}: expected ${expected}`);
      },
    });
    this.provider = driver.getProvider(config);
  }

  static async started(open: OpenCloud, providerSection?: JsonObject): Promise<TestProvider> {
    const made = new TestProvider(open, providerSection);
    await made.start();
    return made;
  }

  async start(): Promise<void> {
    const { clock } = this.open.time;
    await this.end(
      this.provider.start({
        clock,
        random: seededRandom(7),
        log: silentLogger,
        tasks: new TaskSupervisor(clock, (_name, error) => {
          throw error;
        }),
        onApiCall: (call) => this.apiCalls.push(call),
      }),
    );
  }

  async stop(): Promise<void> {
    this.provider.stop();
    await this.end(this.provider.join());
  }

  call(timeoutMs = 3_600_000): Call {
    const deadline = this.open.time.clock.monotonic() + timeoutMs;
    return { signal: new AbortController().signal, deadline, log: silentLogger };
  }

  /** Begins a launch; it goes on as time passes. */
  begin(
    nodeId = '0000000001',
    change: Partial<NodeLaunch> = {},
    labels: readonly string[] = ['small'],
  ): Promise<LaunchedInstance> {
    return this.provider.getRequestHandler('main', { ...request, labels }).launch({
      ...this.call(),
      nodeId,
      hostname: `np${nodeId}`,
      pool: 'main',
      label: 'small',
      availabilityZone: ZONE,
      imageExternalId: undefined,
      tags: {
        nodepool_node_id: nodeId,
        nodepool_provider_name: this.provider.config.name,
        nodepool_pool_name: 'main',
        nodepool_installation: INSTALLATION,
        nodepool_launch_attempt: `attempt-of-${nodeId}`,
      },
      saved: null,
      externalId: null,
      save: async () => undefined,
      ...change,
    });
  }

  launch(...args: Parameters<TestProvider['begin']>): Promise<LaunchedInstance> {
    return this.end(this.begin(...args));
  }

  async cleanUp(externalId: ExternalId | null, nodeId = '0000000001'): Promise<void> {
    const work = async (): Promise<void> => {
      const cleanup = {
        ...this.call(),
        nodeId,
        pool: 'main',
        externalId,
        installation: INSTALLATION,
        launchAttempt: null,
        saved: null,
        save: async () => undefined,
      };
      await this.provider.cleanupNode(cleanup);
      await this.provider.waitForNodeCleanup(nodeId);
    };
    await this.end(work());
  }

  /** A clean-up round in which `leaked` says what is; gives what was offered. */
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

  /** Uploads a file; `change`: what differs from a plain upload. */
  upload(file: string, change: Partial<ImageUploadRequest> = {}): Promise<ExternalId> {
    const { images } = this.provider;
    if (images === undefined) throw new Error('the provider has no images');
    return this.end(
      images.uploadImage({
        ...this.call(),
        image: 'debian',
        externalName: 'debian-1700000000',
        file,
        format: 'raw',
        md5: null,
        sha256: null,
        metadata: { team: 'ci' },
        tags: {
          nodepool_installation: INSTALLATION,
          nodepool_provider_name: 'test',
          nodepool_image_name: 'debian',
          nodepool_build_id: 'b1',
          nodepool_upload_id: '0000000001',
          nodepool_image_format: 'raw',
        },
        progress: () => undefined,
        ...change,
      }),
    );
  }

  /** Lets time pass until the promise has ended. */
  async end<T>(promise: Promise<T>): Promise<T> {
    let ended = false;
    const done = (): void => {
      ended = true;
    };
    promise.then(done, done);
    if (!(await this.open.time.until(() => ended, 7_200_000))) throw new Error('it did not end within two hours');
    return promise;
  }
}

export async function failureOf(promise: Promise<unknown>): Promise<DriverError> {
  try {
    await promise;
  } catch (error) {
    if (isDriverError(error)) return error;
    throw error;
  }
  throw new Error('it did not fail');
}
