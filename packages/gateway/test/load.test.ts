/** Many leases and streams at the same time. */

import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { LeaseDocument } from '@nodepool/requestor/http';
import { until, World, type RunningGateway } from './support/world.js';

const LEASES = 400;
const STREAMS = 200;

let world: World;
let gateway: RunningGateway;

beforeAll(async () => {
  world = await World.start('limits: {requests-per-second: 100000, burst: 100000}');
  gateway = await world.gateway();
});
afterAll(() => world.stop());

it('each lease gets its nodes, each stream sees the end of its lease, and nothing remains', async () => {
  const client = gateway.client();
  const leases = await Promise.all(Array.from({ length: LEASES }, () => client.create({ labels: ['debian'] })));
  const ids = leases.map(({ id }) => id);
  expect(new Set(ids).size).toBe(LEASES);
  const last = new Map<string, LeaseDocument>();
  const streams = ids.slice(0, STREAMS).map(async (id) => {
    for await (const lease of client.follow(id)) last.set(id, lease);
  });
  await until(() => Promise.resolve(world.contenders().length === LEASES));
  const listed: LeaseDocument[] = [];
  for await (const lease of client.list()) listed.push(lease);
  expect(listed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());

  const renewed = await Promise.all(ids.map((id) => client.renew(id, { lifetime: 7200 })));
  expect(renewed.filter(({ lifetime, state }) => lifetime === 7200 && state === 'ready')).toHaveLength(LEASES);
  await Promise.all(ids.map((id) => client.release(id, { outcome: 'success' })));
  await Promise.all(streams);
  expect([...last.values()].filter(({ state, end }) => state === 'ended' && end?.outcome === 'success')).toHaveLength(
    STREAMS,
  );
  await world.clean();
  expect(new Set(world.launcher.deleted).size).toBe(LEASES);
});
