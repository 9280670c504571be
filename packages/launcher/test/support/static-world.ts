/** The world of the tests of static machines; a test file that imports it has a new one for each test. */

import { afterEach, beforeEach, expect } from '@jest/globals';
import { TimeoutError, type JsonObject, type ProviderConfig } from '@nodepool/core';
import { staticDriver } from '@nodepool/driver-static';
import type { NodepoolConfig } from '@nodepool/config';
import { World, type RunningLauncher } from './world.js';

export const KEY = 'ssh-ed25519 AAAA';

export let world: World;
/** Host keys of the hosts; a host without an entry has `KEY`, one with an empty list does not answer. */
export let hostKeys: Map<string, readonly string[]>;
/** Hosts in the order of their scans. */
export let scans: string[];
let failures: string[];

beforeEach(() => {
  newWorld(1, 0);
});
afterEach(async () => {
  expect([...failures, ...(await world.end())]).toEqual([]);
});

/** Creates a new world in which messages to ZooKeeper have a latency of at most `latencyMs`. */
export function newWorld(seed: number, latencyMs: number): void {
  world = new World(seed, (random) => Math.floor(random.next() * (latencyMs + 1)));
  hostKeys = new Map();
  scans = [];
  failures = [];
  world.scanner = {
    scan: async ({ host, connectionType }) => {
      scans.push(host);
      const keys = hostKeys.get(host) ?? [KEY];
      if (keys.length === 0) throw new TimeoutError(`port 22 of ${host} accepted no connection`);
      return connectionType === 'ssh' ? keys : [];
    },
  };
}

/** Returns a node of a pool. */
export function host(name: string, labels: readonly string[], more: JsonObject = {}): JsonObject {
  return { name, labels, ...more };
}

/** Returns the configuration of a provider, by default `rack`, with pool `main`. */
export function rack(nodes: readonly JsonObject[], more: JsonObject = {}, name = 'rack'): Partial<NodepoolConfig> {
  const driver = staticDriver();
  const problems: string[] = [];
  const section = { name, driver: 'static', pools: [{ name: 'main', nodes, ...more }] };
  const config: ProviderConfig = driver.getProviderConfig(section, {
    diskImages: new Map(),
    labels: new Set(['small', 'large', 'other']),
    problem: (path, { expected }) => problems.push(`${path.join('.')}: ${expected}`),
  });
  if (problems.length > 0) throw new Error(problems.join('; '));
  return { providers: new Map([[name, config]]), loadedDrivers: new Map([['static', driver]]) };
}

export async function start(config: Partial<NodepoolConfig>, hostname = 'launcher1'): Promise<RunningLauncher> {
  return world.launcher([], hostname, config);
}

export async function change({ launcher }: RunningLauncher, config: Partial<NodepoolConfig>): Promise<void> {
  await world.during(launcher.apply(world.config([], config)));
}

/** Returns the slots of ready nodes that no request has, as `host:port/slot`, sorted. */
export function ready(): string[] {
  return slots(({ state, allocated_to: to }) => state === 'ready' && to === null);
}

/** Returns the slots of nodes that exist. */
export function slots(isMeant: (node: JsonObject) => boolean = () => true): string[] {
  return [...world.nodes().values()].filter(isMeant).map(slotOf).sort();
}

export function slotOf(node: JsonObject): string {
  return `${asText(node.hostname)}:${asText(node.connection_port)}/${asText(node.slot)}`;
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export async function untilReady(...wanted: readonly string[]): Promise<void> {
  await world.until(`${wanted.join(', ')} are ready`, () => ready().join() === [...wanted].sort().join());
}
