/** Tests of znodes that another program left below node records: launchers report them and continue to work. */

import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { silentLogger, type Logger } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { World, pool, provider } from './support/world.js';

const demo = provider('demo', [pool('main', ['small'])]);

let world: World;
let zk: ZooKeeper;
/** The warnings of launchers: message, then the fields as JSON. */
let warnings: string[];

beforeEach(async () => {
  world = new World();
  warnings = [];
  const log: Logger = {
    ...silentLogger,
    warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`),
    with: () => log,
    named: () => log,
  };
  world.log = log;
  await world.launcher([demo]);
  zk = world.server.connect();
});
afterEach(async () => {
  await world.during(zk.close());
  expect(await world.end()).toEqual([]);
});

async function fulfilled(): Promise<{ readonly id: string; readonly node: string }> {
  const id = await world.submit(['small']);
  const [node = ''] = await world.fulfilled(id);
  return { id, node };
}

it('foreign znodes below a record are reported once, and cause few calls until they are deleted', async () => {
  const { id, node } = await fulfilled();
  const foreign = `/nodepool/nodes/${node}/notes`;
  await world.during(zk.create(foreign));
  await world.during(zk.create(`${foreign}/more`));
  const calls = jest.spyOn(world.cloud, 'deleteInstance');
  await world.giveBack(id);
  await world.clock.advance(600_000);
  expect(world.nodes().get(node)).toMatchObject({ state: 'deleted' });
  expect(calls.mock.calls.length).toBeLessThan(20);
  expect(warnings).toEqual([expect.stringContaining(`"paths":["${foreign}","${foreign}/more"]`)]);
  expect(world.lockHolders()).toEqual([]);

  await world.during(zk.delete(`${foreign}/more`));
  await world.clock.advance(120_000);
  expect(warnings.slice(1)).toEqual([expect.stringContaining(`"paths":["${foreign}"]`)]);
  await world.during(zk.delete(foreign));
  await world.until('the node is gone', () => world.nodes().size === 0);
  expect(world.cloud.existingInstances()).toEqual([]);
});

it('foreign znodes below the lock of a node are reported once, and the node is deleted once they are', async () => {
  const { id, node } = await fulfilled();
  const foreign = `/nodepool/nodes/${node}/lock/notes`;
  const taken = await world.during(world.requestor.take(id));
  await world.during(zk.create(foreign));
  await world.during(world.requestor.giveBack(taken));
  await world.clock.advance(600_000);
  expect(world.nodes().get(node)).toMatchObject({ state: 'used' });
  expect(warnings).toEqual([expect.stringContaining(foreign)]);
  await world.during(zk.delete(foreign));
  await world.until('the node is gone', () => world.nodes().size === 0);
});

it('foreign znodes below the lock of a ready node do not block other requests', async () => {
  const { id, node } = await fulfilled();
  await world.during(zk.create(`/nodepool/nodes/${node}/lock`)).catch(() => undefined);
  await world.during(zk.create(`/nodepool/nodes/${node}/lock/notes`));
  await world.during(world.requestor.withdraw(id));
  await world.during(world.requestor.change(`/nodepool/nodes/${node}`, { allocated_to: null }));
  const other = await fulfilled();
  expect(other.node).not.toBe(node);
  await world.during(zk.delete(`/nodepool/nodes/${node}/lock/notes`));
});

it('foreign znodes below the lock of a request are reported once, and it is served once they are deleted', async () => {
  const lock = '/nodepool/requests-lock/200-0000000000';
  const notes = { type: 'create', path: `${lock}/notes` } as const;
  await world.during(zk.transaction([{ type: 'create', path: lock }, notes]));
  const id = await world.submit(['small']);
  expect(`/nodepool/requests-lock/${id}`).toBe(lock);
  const before = world.server.lastZxid;
  await world.clock.advance(60_000);
  expect(world.server.lastZxid - before).toBeLessThan(20n);
  expect(warnings).toEqual([expect.stringContaining(`${lock}/notes`)]);
  await world.during(zk.delete(`${lock}/notes`));
  await world.fulfilled(id);
});
