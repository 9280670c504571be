/** The world of the tests of the launcher's clean-up; a test file that imports it has a new one for each test. */

import { afterEach, beforeEach, expect } from '@jest/globals';
import { silentLogger, type JsonObject, type LogFields, type Logger } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { World, pool, provider } from './world.js';

export const NODES = '/nodepool/nodes';
export const MINUTE_MS = 60_000;

export let world: World;
/** A client of another program with access to ZooKeeper. */
export let other: ZooKeeper;
/** Warnings, and other log lines, of the launchers. */
export let warnings: { message: string; fields: LogFields }[];
export let notes: { message: string; fields: LogFields }[];

beforeEach(() => {
  world = new World();
  other = world.server.connect();
  warnings = [];
  notes = [];
  const recorder = (always: LogFields): Logger => ({
    ...silentLogger,
    with: (more) => recorder({ ...always, ...more }),
    info: (message, fields) => void notes.push({ message, fields: { ...always, ...fields } }),
    warn: (message, fields) => void warnings.push({ message, fields: { ...always, ...fields } }),
    error: (message, _error, fields) => void warnings.push({ message, fields: { ...always, ...fields } }),
  });
  world.log = recorder({});
});
afterEach(async () => {
  await world.during(other.close());
  expect(await world.end()).toEqual([]);
});

export const demo = (): JsonObject => provider('demo', [pool('main', ['small', 'large'])]);

/** Creates a ready node that is not allocated to a request. */
export async function freeNode(label = 'small'): Promise<string> {
  const id = await world.submit([label]);
  const [node = ''] = await world.fulfilled(id);
  await world.during(world.requestor.withdraw(id));
  await world.until('the node is free', () => world.nodes().get(node)?.allocated_to === null);
  return node;
}

/**
 * Creates and deletes a node. Resolves with its id after the first search for leaked resources, in which an instance of
 * a node without a record would look like one of a lost state.
 */
export async function formerNode(): Promise<string> {
  const node = await freeNode();
  await world.during(world.requestor.change(`${NODES}/${node}`, { state: 'used' }));
  await world.until('the node is deleted', () => !world.nodes().has(node));
  await world.clock.advance(15_000);
  return node;
}

/** Creates a node that its requestor holds. */
export async function heldNode(change: JsonObject = {}): Promise<string> {
  const id = await world.served(['small']);
  const taken = await world.during(world.requestor.take(id));
  const { ids } = taken;
  const [node = ''] = ids;
  const heldSince = { state: 'hold', state_time: world.clock.now() / 1000 };
  await world.during(world.requestor.change(`${NODES}/${node}`, { ...heldSince, ...change }));
  await world.during(world.requestor.die(taken));
  return node;
}

export async function createInstance(tags: Record<string, string>, name = 'stray'): Promise<string> {
  const spec = { name, zone: null, size: 'small', cores: null, ram: null, image: 'debian', tags };
  const { id } = await world.during(Promise.resolve(world.cloud.createInstance(spec)));
  return id;
}

export function tagsOfNode(nodeId: string, attempt: string): Record<string, string> {
  return {
    nodepool_provider_name: 'demo',
    nodepool_pool_name: 'main',
    nodepool_node_id: nodeId,
    nodepool_launch_attempt: attempt,
  };
}

export function exists(instance: string): boolean {
  return world.cloud.existingInstances().some(({ id }) => id === instance);
}

export function readyFor(seconds: number): Partial<NodepoolConfig> {
  return {
    labels: new Map([['small', { name: 'small', minReady: 0, maxReadyAgeMs: seconds * 1000, maxWaitMs: Infinity }]]),
  };
}
