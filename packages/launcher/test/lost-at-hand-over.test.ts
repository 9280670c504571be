/** Tests of hand-overs of ready nodes that may have lost their instance. */

import { describe, expect, it } from '@jest/globals';
import { TransientError } from '@nodepool/core';
import { faultyDriver } from './support/faulty-driver.js';
import { MINUTE_MS, demo, exists, world } from './support/cleanup-world.js';
import { instanceOf, listing, settledNodes } from './support/lost-instances.js';
import { REQUESTS, pool, provider } from './support/world.js';

describe('a hand-over', () => {
  it('by a launcher that has just started gives no node whose instance is missing', async () => {
    const first = await world.launcher([demo()], 'launcher1');
    const nodes = await settledNodes(6);
    await first.stop();
    for (const node of nodes.slice(0, 4)) world.cloud.destroyInstance(instanceOf(node));
    const ids = await world.submitEach(6, ['small']);
    await world.launcher([demo()], 'launcher2');
    const given = [];
    for (const id of ids) given.push(...(await world.fulfilled(id)));
    expect(given.map(instanceOf).filter((id) => !exists(id))).toEqual([]);
    expect(given).toEqual(expect.arrayContaining(nodes.slice(4)));
  });

  it('by a launcher whose cloud has never listed its instances gives new nodes', async () => {
    const first = await world.launcher([demo()], 'launcher1');
    const [node = ''] = await settledNodes(1);
    await first.stop();
    const failing = (): never => {
      throw new TransientError('no list');
    };
    await world.launcher([demo()], 'launcher2', listing(failing));
    const [other] = await world.fulfilled(await world.submit(['small']));
    expect(other).not.toBe(node);
    expect(world.nodes().get(node)).toMatchObject({ state: 'ready', allocated_to: null });
  });

  it('is not delayed for long by a cloud that hangs after it has listed the instance', async () => {
    let hangs = false;
    const hanging = faultyDriver(world.cloud, (provider) => ({
      listNodes: (call) => (hangs ? new Promise(() => undefined) : provider.listNodes(call)),
    }));
    await world.launcher([demo()], 'launcher1', hanging);
    const nodes = await settledNodes(3);
    hangs = true;
    await world.clock.advance(5 * MINUTE_MS);
    const began = world.clock.monotonic();
    const ids = await world.submitEach(2, ['small']);
    const given = [...(await world.fulfilled(ids[0]!)), ...(await world.fulfilled(ids[1]!))];
    expect(nodes).toEqual(expect.arrayContaining(given));
    expect(world.clock.monotonic() - began).toBeLessThan(15_000);
    const id = await world.submit(['small']);
    expect(nodes).toEqual(expect.arrayContaining(await world.fulfilled(id)));
    const { state_time: fulfilledAt, created_time: submittedAt } = world.records(REQUESTS).get(id) ?? {};
    expect(Number(fulfilledAt) - Number(submittedAt)).toBeLessThan(1);
  });

  it('of many nodes to many requests shares one listing', async () => {
    const first = await world.launcher([demo()], 'launcher1');
    const nodes = await settledNodes(20);
    await first.stop();
    let listings = 0;
    await world.launcher(
      [demo()],
      'launcher2',
      listing((list) => {
        listings += 1;
        return list;
      }),
    );
    const ids = await world.submitEach(20, ['small']);
    for (const id of ids) expect(nodes).toEqual(expect.arrayContaining(await world.fulfilled(id)));
    expect(listings).toBe(1);
  });

  it('does not include a node that is lost while the other nodes of the request are launched', async () => {
    await world.launcher([demo()]);
    const [node = ''] = await settledNodes(1);
    world.cloud.configure({ bootTimeMs: [5 * MINUTE_MS, 5 * MINUTE_MS] });
    const id = await world.submit(['small', 'large']);
    await world.until('it is allocated', () => world.nodes().get(node)?.allocated_to === id);
    await world.clock.advance(10_000);
    world.cloud.destroyInstance(instanceOf(node));
    const given = await world.fulfilled(id);
    expect(given).not.toContain(node);
    expect(given.map(instanceOf).every(exists)).toBe(true);
  });

  it('does not include a node that only a listing for the limits shows as lost', async () => {
    world.cloud.configure({ quota: { instances: 10, cores: 100, ram: 100_000 } });
    let hanging = 0;
    const nextHangs = faultyDriver(world.cloud, (provider) => ({
      listNodes: (call) => (hanging-- > 0 ? new Promise(() => undefined) : provider.listNodes(call)),
    }));
    await world.launcher([demo()], 'launcher1', nextHangs);
    const [node = ''] = await settledNodes(1);
    hanging = 1;
    await world.until('the listing of the checks hangs', () => hanging === 0);
    world.cloud.destroyInstance(instanceOf(node));
    world.cloud.configure({ bootTimeMs: [4 * MINUTE_MS, 4 * MINUTE_MS] });
    const id = await world.submit(['small', 'large']);
    await world.until('it is allocated', () => world.nodes().get(node)?.allocated_to === id);
    // The limits, which were read at the start, are too old by now.
    await world.clock.advance(3.5 * MINUTE_MS);
    await world.submit(['large']);
    const given = await world.fulfilled(id);
    expect(given).not.toContain(node);
    expect(given.map(instanceOf).every(exists)).toBe(true);
  });
});

it('a request is written a few times only while its launcher cannot check the only node that fits', async () => {
  const first = await world.launcher([demo()], 'launcher1');
  await settledNodes(1);
  await first.stop();
  const failing = (): never => {
    throw new TransientError('no list');
  };
  const full = provider('demo', [pool('main', ['small', 'large'], { 'max-servers': 1 })]);
  await world.launcher([full], 'launcher2', listing(failing));
  const id = await world.submit(['small']);
  let writes = 0;
  world.server.onCommit((changes) => {
    writes += changes.filter(({ path }) => path === `${REQUESTS}/${id}`).length;
  });
  const [node = ''] = await world.fulfilled(id);
  expect(exists(instanceOf(node))).toBe(true);
  expect(writes).toBeLessThan(10);
});
