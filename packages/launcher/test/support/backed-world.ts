/** The world of the tests of nodes on backing nodes; a test file that imports it has a new one for each test. */

import { afterEach, beforeEach, expect } from '@jest/globals';
import { parseBackingData, type BackingData, type JsonObject } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { exampleDriver } from '@nodepool/driver-example';
import { driver } from '@nodepool/driver-metastatic';
import { pool, provider, World, type RunningLauncher } from './world.js';

/** Provider of backing nodes with label `large`. */
export const CLOUD = provider('cloud', [pool('main', ['large'])]);

export let world: World;

beforeEach(() => {
  newWorld(1, 0);
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

/** Creates a new world in which messages to ZooKeeper have a latency of at most `latencyMs`. */
export function newWorld(seed: number, latencyMs: number): void {
  world = new World(seed, (random) => Math.floor(random.next() * (latencyMs + 1)));
}

/** Returns a section of provider `meta`, whose label `small` has four slots per backing node. */
export function meta(label: JsonObject = {}, more: JsonObject = {}): JsonObject {
  const small = { name: 'small', 'backing-label': 'large', 'max-parallel-jobs': 4, 'grace-time': 60, ...label };
  return { name: 'meta', driver: 'metastatic', pools: [{ name: 'main', labels: [small], ...more }] };
}

/** Returns a configuration with the provider `meta` and providers of the example cloud. */
export function backed(section: JsonObject = meta(), clouds: readonly JsonObject[] = [CLOUD]): Partial<NodepoolConfig> {
  const problems: string[] = [];
  const config = driver.getProviderConfig(section, {
    diskImages: new Map(),
    labels: new Set(['small', 'large', 'other']),
    problem: (path, { expected }) => problems.push(`${path.join('.')}: ${expected}`),
  });
  if (problems.length > 0) throw new Error(problems.join('; '));
  const { providers } = world.config(clouds);
  return {
    providers: new Map([...providers, ['meta', config]]),
    loadedDrivers: new Map([
      ['example', exampleDriver({ cloud: world.cloud })],
      ['metastatic', driver],
    ]),
  };
}

export async function start(config = backed(), hostname = 'launcher1'): Promise<RunningLauncher> {
  return world.launcher([], hostname, config);
}

/** Returns the records of backing nodes by id. */
export function backings(): Map<string, { readonly node: JsonObject; readonly data: BackingData }> {
  const found = new Map<string, { readonly node: JsonObject; readonly data: BackingData }>();
  for (const [id, node] of world.nodes()) {
    const data = parseBackingData(node['user_data'] ?? null);
    if (data !== undefined) found.set(id, { node, data });
  }
  return found;
}

/** Returns the places of the nodes of the provider `meta`, as `<backing node>/<slot>`. */
export function places(): string[] {
  return [...world.nodes().values()].flatMap(({ provider: name, driver_data: data }) => {
    const { backing_node: backing, slot } = (data ?? {}) as JsonObject;
    return name === 'meta' && typeof backing === 'string' ? [`${backing}/${slot as number}`] : [];
  });
}

/** Returns the requests of backing nodes. */
export function backingRequests(): JsonObject[] {
  return [...world.records('/nodepool/requests').values()].filter(
    ({ requestor }) => requestor === 'NodePool:metastatic:meta',
  );
}
