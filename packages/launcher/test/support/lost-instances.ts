/** Helpers for tests of nodes that lose their instance. */

import type { Instance, Provider } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { MINUTE_MS, notes, warnings, world } from './cleanup-world.js';
import { faultyDriver } from './faulty-driver.js';

/** Time within which a lost node is deleted: two intervals between listings, and a margin (ms). */
export const REPLACED_MS = 2.5 * MINUTE_MS;
/** Time after which listings count for a new ready node (ms). */
export const SETTLED_MS = MINUTE_MS + 1000;

/** Lets `change` replace each list of instances that is requested for the checks. */
export function listing(change: (list: readonly Instance[]) => readonly Instance[]): Partial<NodepoolConfig> {
  return faultyDriver(world.cloud, (provider: Provider) => ({
    listNodes: async (call) => change(await provider.listNodes(call)),
  }));
}

export function instanceOf(node: string): string {
  return world.nodes().get(node)?.external_id as string;
}

export function ready(): string[] {
  return [...world.nodes()].filter(([, { state }]) => state === 'ready').map(([id]) => id);
}

/** Creates ready nodes that are not allocated to a request, and lets their listings settle. */
export async function settledNodes(count: number): Promise<string[]> {
  const ids = await world.submitEach(count, ['small']);
  const nodes: string[] = [];
  for (const id of ids) nodes.push(...(await world.fulfilled(id)));
  for (const id of ids) await world.during(world.requestor.withdraw(id));
  await world.until('the nodes are free', () => nodes.every((id) => world.nodes().get(id)?.allocated_to === null));
  await world.clock.advance(SETTLED_MS);
  return nodes;
}

export function said(message: string): unknown[] {
  return [...notes, ...warnings].filter((each) => each.message === message).map(({ fields }) => fields);
}
