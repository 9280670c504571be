/** A provider of the example driver, as a launcher would have it. */

import {
  isDriverError,
  silentLogger,
  TaskSupervisor,
  type ApiCall,
  type Clock,
  type ExternalId,
  type InstanceTags,
  type JsonObject,
  type JsonValue,
  type LaunchedInstance,
  type NodeCleanup,
  type NodeLaunch,
  type Provider,
  type RequestInfo,
} from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { exampleDriver, type ExampleCloud } from '../src/index.js';
import { callOn } from './helpers.js';

/** Id of the installation that nodes and images of these tests belong to. */
export const INSTALLATION = '0123456789abcdef';

export const PROVIDER = 'demo';

/** A provider section with one pool `main` and one label `small`, and these keys besides. */
export function section(change: JsonObject = {}, label: JsonObject = {}, pool: JsonObject = {}): JsonObject {
  return {
    name: PROVIDER,
    driver: 'example',
    'cloud-images': [{ name: 'debian', username: 'root' }],
    pools: [{ name: 'main', labels: [{ name: 'small', 'cloud-image': 'debian', size: 'small', ...label }], ...pool }],
    ...change,
  };
}

const noContext = { diskImages: new Map(), labels: new Set(['small']), problem: (): void => undefined };

export interface TestProvider {
  readonly provider: Provider;
  readonly apiCalls: ApiCall[];
  /** What failed in the background. */
  readonly failures: unknown[];
  /** Ends the provider as a killed process would: nothing of it goes on. */
  kill(): Promise<void>;
}

export async function startProvider(
  clock: Clock,
  cloud: ExampleCloud | undefined,
  providerSection: JsonObject = section(),
): Promise<TestProvider> {
  const driver = exampleDriver(cloud === undefined ? {} : { cloud });
  const provider = driver.getProvider(driver.getProviderConfig(providerSection, noContext));
  const apiCalls: ApiCall[] = [];
  const failures: unknown[] = [];
  await provider.start({
    clock,
    random: seededRandom(99),
    log: silentLogger,
    tasks: new TaskSupervisor(clock, (_name, error) => failures.push(error)),
    onApiCall: (call) => apiCalls.push(call),
  });
  const kill = async (): Promise<void> => {
    provider.stop();
    await provider.join();
  };
  return { provider, apiCalls, failures, kill };
}

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

export function tagsOf(nodeId: string, attempt: string): InstanceTags {
  return {
    nodepool_node_id: nodeId,
    nodepool_provider_name: PROVIDER,
    nodepool_pool_name: 'main',
    nodepool_installation: INSTALLATION,
    nodepool_launch_attempt: attempt,
  };
}

/** A launch of node `nodeId`; what it saves goes into `saves`. */
export function launchOf(
  clock: Clock,
  nodeId: string,
  change: Partial<NodeLaunch> = {},
): NodeLaunch & { readonly saves: { externalId: unknown; machine: JsonValue }[] } {
  const saves: { externalId: unknown; machine: JsonValue }[] = [];
  return {
    ...callOn(clock, { timeoutMs: 600_000 }),
    nodeId,
    hostname: `np-${nodeId}`,
    pool: 'main',
    label: 'small',
    availabilityZone: undefined,
    imageExternalId: undefined,
    tags: tagsOf(nodeId, `attempt-of-${nodeId}`),
    saved: null,
    externalId: null,
    save: async (progress) => {
      saves.push(progress);
    },
    ...change,
    saves,
  };
}

export function launch(provider: Provider, nodeLaunch: NodeLaunch): Promise<LaunchedInstance> {
  return provider.getRequestHandler('main', request).launch(nodeLaunch);
}

/** How a promise ended, without waiting for it. */
export interface Ending<T> {
  value?: T;
  code?: string;
  outcome?: string;
  message?: string;
  ended: boolean;
}

export function endingOf<T>(promise: Promise<T>): Ending<T> {
  const ending: Ending<T> = { ended: false };
  promise.then(
    (value) => Object.assign(ending, { value, ended: true }),
    (error: unknown) => {
      if (!isDriverError(error)) throw error;
      const { code, outcome, message } = error;
      Object.assign(ending, { code, outcome, message, ended: true });
    },
  );
  return ending;
}

/** Deletes what the cloud has of a node, and waits for it. */
export async function cleanUp(
  provider: Provider,
  clock: Clock,
  nodeId: string,
  externalId: ExternalId | null,
): Promise<void> {
  const cleanup: NodeCleanup = {
    ...callOn(clock, { timeoutMs: 600_000 }),
    nodeId,
    pool: 'main',
    externalId,
    installation: INSTALLATION,
    launchAttempt: null,
    saved: null,
    save: async () => undefined,
  };
  await provider.cleanupNode(cleanup);
  await provider.waitForNodeCleanup(nodeId);
}
