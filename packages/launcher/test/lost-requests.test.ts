/** Tests that requests that lost their launcher resume, whatever other requests wait. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { World, pool, provider } from './support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
  world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

async function booting(count: number): Promise<void> {
  await world.until('the instances boot', () => world.cloud.existingInstances().length === count);
}

describe('a request whose launcher lost its lock', () => {
  it('continues in its pool although another pool has priority now', async () => {
    const second = pool('second', ['small'], { priority: 200 });
    const before = await world.launcher([provider('demo', [second])]);
    const id = await world.submit(['small']);
    await booting(1);
    await before.stop();
    await world.launcher([provider('demo', [second, pool('first', ['small'], { priority: 50 })])]);
    await world.fulfilled(id);
    expect([...world.nodes().values()]).toMatchObject([{ pool: 'second', allocated_to: id }]);
  });

  it('does not wait behind one that waits for the capacity of its nodes', async () => {
    const sections = [provider('demo', [pool('main', ['small'], { 'max-servers': 3 })])];
    const before = await world.launcher(sections);
    const lost = await world.submit(['small', 'small'], { priority: 300 });
    await booting(2);
    await before.stop();
    const first = await world.submit(['small', 'small', 'small'], { priority: 100 });
    await world.launcher(sections);
    await world.fulfilled(lost);
    await world.giveBack(lost);
    await world.fulfilled(first);
    expect(world.nodes().size).toBe(3);
  });

  it('gets complete nodes although the Python Nodepool had not completed their records', async () => {
    await (await world.launcher([])).stop();
    const zk = world.server.connect();
    const id = await world.submit(['small']);
    await world.during(world.requestor.change(`/nodepool/requests/${id}`, { state: 'pending' }));
    // The record of a Python launcher before it begins the launch.
    const begun = {
      ...{ state: 'building', state_time: 1, created_time: 1, provider: 'demo', pool: 'main', type: ['small'] },
      ...{ allocated_to: id, external_id: null, image_id: null, resources: null, az: null, hostname: null },
      ...{ connection_port: 22, connection_type: null, username: null, python_path: null, shell_type: null },
    };
    const data = Buffer.from(JSON.stringify(begun));
    await world.during(zk.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' }));
    await world.launcher([provider('demo', [pool('main', ['small'])])]);
    await world.fulfilled(id);
    const other = await world.submit(['small'], { reuse: false });
    await world.fulfilled(other);
    const fields = [...world.nodes().values()].map(
      ({ connection_type, connection_port, username, python_path, shell_type, image_id, resources }) => ({
        ...{ connection_type, connection_port, username, python_path, shell_type, image_id, resources },
      }),
    );
    expect(fields).toHaveLength(2);
    expect(fields[0]).toEqual(fields[1]);
    await world.during(zk.close());
  });

  it('waits again after minutes in which no pool has continued its launch, although that pool is registered', async () => {
    await (await world.launcher([])).stop();
    const zk = world.server.connect();
    const create = async (path: string, record: JsonObject, mode: 'ephemeral' | 'persistent'): Promise<unknown> =>
      world.during(zk.create(path, Buffer.from(JSON.stringify(record)), { mode: `${mode}-sequential` }));
    const python = { id: 'python', name: 'main', provider_name: 'elsewhere', supported_labels: ['small'] };
    const component = { hostname: 'python', kind: 'pool', state: 'running', version: '11', model_api: 0 };
    await create('/nodepool/components/pool/python', { ...component, ...python, priority: 100 }, 'ephemeral');
    const id = await world.submit(['small']);
    await world.during(world.requestor.change(`/nodepool/requests/${id}`, { state: 'pending' }));
    const node = { provider: 'elsewhere', pool: 'main', type: ['small'], state: 'building', allocated_to: id };
    await create('/nodepool/nodes/', { ...node, state_time: 1, created_time: 1 }, 'persistent');
    await world.launcher([provider('demo', [pool('main', ['large'])])]);
    await world.clock.advance(240_000);
    expect(world.stateOf(id)).toBe('pending');
    await world.clock.advance(180_000);
    expect(world.stateOf(id)).toBe('requested');
    await world.during(zk.close());
  });

  it('changes no other ready node when it releases its own', async () => {
    // The first launcher creates the root znodes.
    await (await world.launcher([])).stop();
    const zk = world.server.connect();
    const create = async (more: JsonObject): Promise<unknown> => {
      const node = { provider: 'demo', pool: 'main', resources: { instances: 1 }, state_time: 1, created_time: 1 };
      const data = Buffer.from(JSON.stringify({ ...node, state: 'ready', allocated_to: null, ...more }));
      return world.during(zk.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' }));
    };
    const id = await world.submit(['small', 'large', 'other'], { tenant: 'red' });
    await world.during(world.requestor.change(`/nodepool/requests/${id}`, { state: 'pending' }));
    await create({ type: ['small'], allocated_to: id, tenant_name: 'red', requestor: 'zuul' });
    await create({ type: ['large'], tenant_name: 'blue', requestor: 'before' });
    await create({ type: ['other'], state: 'hold' });
    await world.launcher([provider('demo', [pool('main', ['small', 'large', 'other'], { 'max-servers': 3 })])]);
    await world.until('the request waits again', () => world.stateOf(id) === 'requested');
    expect([...world.nodes().values()]).toMatchObject([
      { state: 'ready', allocated_to: null, tenant_name: 'red', requestor: 'zuul' },
      { state: 'ready', allocated_to: null, tenant_name: 'blue', requestor: 'before' },
      { state: 'hold' },
    ]);
    await world.during(zk.close());
  });
});
