/** Tests that requests that are withdrawn while a launcher answers them leave no lock behind. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { sleep, type JsonObject } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { REQUESTS, World, pool, provider } from './support/world.js';

const LATENCY_MS = 2;

let world: World;
let zk: ZooKeeper;
beforeEach(async () => {
  world = new World(1, () => LATENCY_MS);
  // The first launcher creates the root znodes.
  await (await world.launcher([])).stop();
  zk = world.server.connect();
});
afterEach(async () => {
  await world.during(zk.close());
  expect(await world.end()).toEqual([]);
});

/** Withdraws each request as soon as a launcher has locked it, so that the launcher's next write fails. */
function withdrawWhenLocked(): string[] {
  const withdrawn: string[] = [];
  world.server.onCommit((changes) => {
    for (const { path, type } of changes) {
      const [, id] = /^\/nodepool\/requests-lock\/([^/]+)\/.*__lock__/.exec(path) ?? [];
      if (id === undefined || type !== 'created') continue;
      withdrawn.push(id);
      void world.requestor.withdraw(id);
    }
  });
  return withdrawn;
}

it('a request that another launcher decided about while this one declined it is not a failure', async () => {
  await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const decided = Buffer.from(JSON.stringify({ state: 'fulfilled', node_types: ['large'], declined_by: ['other'] }));
  world.server.onCommit((changes) => {
    for (const { path, type } of changes) {
      const [, id] = /^\/nodepool\/requests-lock\/([^/]+)\/.*__lock__/.exec(path) ?? [];
      // The other launcher still writes under a lock whose session has expired.
      if (id !== undefined && type === 'created') void zk.set(`${REQUESTS}/${id}`, decided);
    }
  });
  const id = await world.submit(['large']);
  await world.clock.advance(1000);
  expect(world.records(REQUESTS).get(id)).toMatchObject({ state: 'fulfilled', declined_by: ['other'] });
  expect(world.lockHolders()).toEqual([]);
});

it('the withdrawal of a declined request is not a failure', async () => {
  await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const withdrawn = withdrawWhenLocked();
  const ids = await world.submitEach(3, ['large']);
  await world.until('all are withdrawn', () => world.records(REQUESTS).size === 0);
  await world.clock.advance(1000);
  expect(withdrawn.sort()).toEqual(ids.sort());
  expect(world.lockHolders()).toEqual([]);
  expect(world.records('/nodepool/requests-lock').size).toBe(0);
});

it('the withdrawal of an orphaned request frees its ready nodes', async () => {
  const id = await world.submit(['small', 'small', 'small']);
  await world.during(world.requestor.change(`${REQUESTS}/${id}`, { state: 'pending' }));
  const node = { provider: 'demo', pool: 'main', type: ['small'], resources: { instances: 1 } };
  const create = async (more: JsonObject): Promise<unknown> => {
    const data = Buffer.from(JSON.stringify({ ...node, state_time: 1, created_time: 1, ...more }));
    return world.during(zk.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' }));
  };
  for (let count = 0; count < 2; count += 1) await create({ state: 'ready', allocated_to: id });
  for (let count = 0; count < 2; count += 1) await create({ state: 'hold', allocated_to: null });
  const withdrawn = withdrawWhenLocked();
  await world.launcher([provider('demo', [pool('main', ['small'], { 'max-servers': 4 })])]);
  await world.clock.advance(1000);
  expect(withdrawn).toEqual([id]);
  expect(world.lockHolders()).toEqual([]);
  const states = [...world.nodes().values()].map(({ state, allocated_to }) => ({ state, allocated_to }));
  const [ready, held] = [
    { state: 'ready', allocated_to: null },
    { state: 'hold', allocated_to: null },
  ];
  expect(states).toEqual([ready, ready, held, held]);
});

it('a ready node stays with its request although the launcher has read the node first', async () => {
  const { zk: client } = await world.launcher([provider('demo', [pool('main', ['small'])])]);
  const get = client.get.bind(client);
  const late = new Set<string>();
  client.get = async (path, options) => {
    const isFirst = path.startsWith(`${REQUESTS}/`) && !late.has(path);
    if (isFirst) {
      late.add(path);
      await sleep(world.clock, 10_000);
    }
    return get(path, options);
  };
  const id = await world.during(world.requestor.put(['small'], { state: 'fulfilled' }));
  const node = { provider: 'demo', pool: 'main', type: ['small'], state: 'ready', allocated_to: id };
  const data = Buffer.from(JSON.stringify({ ...node, state_time: 1, created_time: 1 }));
  await world.during(zk.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' }));
  await world.clock.advance(20_000);
  expect([...late]).toEqual([`${REQUESTS}/${id}`]);
  expect([...world.nodes().values()]).toMatchObject([{ state: 'ready', allocated_to: id }]);
  await world.during(world.requestor.withdraw(id));
  await world.clock.advance(1000);
  expect([...world.nodes().values()]).toMatchObject([{ state: 'ready', allocated_to: null }]);
});
