/** A provider of the example driver, with the context that a launcher supplies. */

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
  type NodeLaunch,
  type Provider,
} from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { callOn, instanceTags, nodeCleanup, nodeLaunch, requestFor } from '@nodepool/driver-kit';
import { exampleDriver, type ExampleCloud } from '../src/index.js';

export const PROVIDER = 'demo';

/** Returns a provider section with one pool `main`, one label `small` and the given keys. */
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
  /** Errors of background work. */
  readonly failures: unknown[];
  /** Stops the provider as a killed process would: all of its work ends. */
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

/** The provider configuration that all launches and cleanups of these tests use. */
const config = exampleDriver({}).getProviderConfig(section(), noContext);

export function tagsOf(nodeId: string, attempt: string): InstanceTags {
  return instanceTags(config, nodeId, attempt);
}

/** Returns a launch of node `nodeId` that appends its progress to `saves`. */
export function launchOf(
  clock: Clock,
  nodeId: string,
  change: Partial<NodeLaunch> = {},
): NodeLaunch & { readonly saves: { externalId: unknown; machine: JsonValue }[] } {
  const saves: { externalId: unknown; machine: JsonValue }[] = [];
  const save: NodeLaunch['save'] = async (progress) => {
    saves.push(progress);
  };
  return {
    ...nodeLaunch(config, callOn(clock, 600_000), nodeId, { hostname: `np-${nodeId}`, save, ...change }),
    saves,
  };
}

export function launch(provider: Provider, launched: NodeLaunch): Promise<LaunchedInstance> {
  return provider.getRequestHandler('main', requestFor('small')).launch(launched);
}

/** The current state of a promise, without waiting for it. */
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

/** Deletes all resources of a node. */
export async function cleanUp(
  provider: Provider,
  clock: Clock,
  nodeId: string,
  externalId: ExternalId | null,
): Promise<void> {
  await provider.cleanupNode(nodeCleanup(config, callOn(clock, 600_000), nodeId, externalId));
  await provider.waitForNodeCleanup(nodeId);
}
