/** A provider of this driver on a simulated cloud, as a launcher would have it. */

import {
  isDriverError,
  silentLogger,
  TaskSupervisor,
  type ApiCall,
  type DriverError,
  type ExternalId,
  type ImageUploadRequest,
  type InstanceTags,
  type JsonObject,
  type LaunchedInstance,
  type NodeLaunch,
  type Provider,
  type ProviderConfigContext,
  type RequestInfo,
  type Resource,
} from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { azureDriver } from '../src/index.js';
import { callOn, PROVIDER, section, type OpenCloud } from './cloud.js';

/** Id of the installation that nodes and images of these tests belong to. */
export const INSTALLATION = '0123456789abcdef';

const configContext: ProviderConfigContext = {
  diskImages: new Map(),
  labels: new Set(['small']),
  problem: (path, { expected }) => {
    throw new Error(`${path.join('.')}: expected ${expected}`);
  },
};

const request: RequestInfo = {
  id: '200-0000000001',
  labels: ['small'],
  requestor: 'zuul',
  requestorData: { job: 'unit' },
  relativePriority: 0,
  eventId: null,
  createdTime: null,
  tenantName: 'acme',
};

export function tagsOf(nodeId: string, attempt = `attempt-of-${nodeId}`): InstanceTags {
  return {
    nodepool_node_id: nodeId,
    nodepool_provider_name: PROVIDER,
    nodepool_pool_name: 'main',
    nodepool_installation: INSTALLATION,
    nodepool_launch_attempt: attempt,
  };
}

/** A process with one provider. What it begins ends within simulated time. */
export class TestProvider {
  readonly apiCalls: ApiCall[] = [];
  /** What failed in the background. */
  readonly failures: unknown[] = [];
  readonly provider: Provider;

  constructor(
    private readonly open: Pick<OpenCloud, 'time' | 'env'>,
    providerSection: JsonObject = section(),
  ) {
    const driver = azureDriver(open.env);
    this.provider = driver.getProvider(driver.getProviderConfig(providerSection, configContext));
  }

  static async started(open: Pick<OpenCloud, 'time' | 'env'>, providerSection?: JsonObject): Promise<TestProvider> {
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
        tasks: new TaskSupervisor(clock, (_name, error) => this.failures.push(error)),
        onApiCall: (call) => this.apiCalls.push(call),
      }),
    );
  }

  async stop(): Promise<void> {
    this.provider.stop();
    await this.end(this.provider.join());
  }

  begin(nodeId = '0000000001', change: Partial<NodeLaunch> = {}): Promise<LaunchedInstance> {
    return this.provider.getRequestHandler('main', request).launch({
      ...callOn(this.open.time.clock, 3_600_000),
      nodeId,
      hostname: `np${nodeId}`,
      pool: 'main',
      label: 'small',
      availabilityZone: undefined,
      imageExternalId: undefined,
      tags: tagsOf(nodeId),
      saved: null,
      externalId: null,
      save: async () => undefined,
      ...change,
    });
  }

  launch(nodeId?: string, change?: Partial<NodeLaunch>): Promise<LaunchedInstance> {
    return this.end(this.begin(nodeId, change));
  }

  /** The error that a launch ends with. */
  async failedLaunch(nodeId?: string, change?: Partial<NodeLaunch>): Promise<DriverError> {
    return failureOf(this.launch(nodeId, change));
  }

  async cleanUp(externalId: ExternalId | null, nodeId = '0000000001'): Promise<void> {
    await this.end(this.beginCleanUp(externalId, nodeId));
  }

  async beginCleanUp(externalId: ExternalId | null, nodeId = '0000000001'): Promise<void> {
    await this.provider.cleanupNode({
      ...callOn(this.open.time.clock, 3_600_000),
      nodeId,
      pool: 'main',
      externalId,
      installation: INSTALLATION,
      launchAttempt: null,
      saved: null,
      save: async () => undefined,
    });
    await this.provider.waitForNodeCleanup(nodeId);
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
    await this.end(this.provider.cleanupLeakedResources(round, callOn(this.open.time.clock)));
    return offered;
  }

  /** Uploads a file; `change`: what differs from a plain upload. */
  upload(file: string, change: Partial<ImageUploadRequest> = {}): Promise<ExternalId> {
    const { images } = this.provider;
    if (images === undefined) throw new Error('the provider has no images');
    return this.end(
      images.uploadImage({
        ...callOn(this.open.time.clock),
        image: 'debian',
        externalName: 'debian-1',
        file,
        format: 'vhd',
        md5: null,
        sha256: null,
        metadata: {},
        tags: {
          nodepool_installation: INSTALLATION,
          nodepool_provider_name: PROVIDER,
          nodepool_image_name: 'debian',
          nodepool_build_id: 'b1',
          nodepool_upload_id: '0000000001',
          nodepool_image_format: 'vhd',
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

  /** How often a call was made. */
  count(operation: string, method = 'GET'): number {
    return this.apiCalls.filter((call) => call.operation === operation && call.method === method).length;
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
