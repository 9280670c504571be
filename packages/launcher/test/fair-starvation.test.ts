/** Tests of requests that starve although their tenants have their shares, and of the backfill between tenants. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { compareRequests } from '@nodepool/core';
import { requestWith, VirtualClock } from '@nodepool/core/testing';
import { STARVATION_MS, Starvation } from '../src/fairness/starvation.js';
import { Contention, shares } from './support/contention.js';
import { pool, provider, World } from './support/world.js';

let clock: VirtualClock;
beforeEach(() => {
  clock = new VirtualClock();
});

it('a request goes first after ten minutes in which none with its needs was served', async () => {
  const starvation = new Starvation(clock);
  const request = requestWith({ id: '200-0000000001', tenant_name: 'a', created_time: clock.now() / 1000 });
  starvation.consider({ request, servedAt: undefined }, compareRequests);
  expect(starvation.senior(request)).toBeUndefined();
  await clock.advance(STARVATION_MS / 2);
  const servedAt = clock.now();
  await clock.advance(STARVATION_MS / 2);
  starvation.consider({ request, servedAt }, compareRequests);
  expect(starvation.senior(request)).toBeUndefined();
  starvation.consider({ request, servedAt: undefined }, compareRequests);
  expect(starvation.senior(request)).toBe(clock.now());
});

it('a tenant has one such request per interval', async () => {
  const starvation = new Starvation(clock);
  const of = (id: string) => requestWith({ id, tenant_name: 'a', created_time: clock.now() / 1000 });
  const [first, second] = [of('200-0000000001'), of('200-0000000002')];
  const considerBoth = (): void => {
    for (const request of [first, second]) starvation.consider({ request, servedAt: undefined }, compareRequests);
  };
  await clock.advance(STARVATION_MS);
  considerBoth();
  expect([first, second].map((each) => starvation.senior(each) !== undefined)).toEqual([true, false]);
  starvation.ended(first);
  starvation.consider({ request: second, servedAt: undefined }, compareRequests);
  expect(starvation.senior(second)).toBeUndefined();
  await clock.advance(STARVATION_MS);
  starvation.consider({ request: second, servedAt: undefined }, compareRequests);
  expect(starvation.senior(second)).toBe(clock.now());
});

it('a starving request replaces the one of its tenant that waits for it', async () => {
  const starvation = new Starvation(clock);
  const of = (id: string) => requestWith({ id, tenant_name: 'a', created_time: clock.now() / 1000 });
  const consider = (request: ReturnType<typeof of>): void =>
    starvation.consider({ request, servedAt: undefined }, compareRequests);
  const low = of('300-0000000001');
  await clock.advance(STARVATION_MS);
  const since = clock.now();
  const high = of('200-0000000002');
  for (const request of [high, low]) consider(request);
  expect(starvation.senior(low)).toBe(since);
  await clock.advance(STARVATION_MS);
  for (const request of [high, low]) consider(request);
  expect([high, low].map((each) => starvation.senior(each))).toEqual([since, undefined]);
});

let world: World | undefined;
afterEach(async () => {
  expect(await world?.end()).toEqual(world === undefined ? undefined : []);
  world = undefined;
});

it('tenants below their shares lend each other capacity within the backfill window', async () => {
  world = new World();
  const sections = [provider('demo', [pool('main', ['small'], { 'max-servers': 10 })])];
  await world.launcher(sections, 'launcher1', { fairShares: shares({ a: 1, b: 1 }) });
  const used = await world.served(
    Array.from({ length: 6 }, () => 'small'),
    { tenant: 'c' },
  );
  const large = await world.submit(
    Array.from({ length: 8 }, () => 'small'),
    { tenant: 'a' },
  );
  await world.clock.advance(1000);
  await world.served(['small'], { tenant: 'b' });
  expect(world.stateOf(large)).toBe('requested');
  await world.giveBack(used);
  await world.fulfilled(large);
});

it('a request does not starve although an older one of its tenant with a worse priority starves, too', async () => {
  world = new World();
  const sections = [provider('demo', [pool('main', ['small', 'large', 'other'], { 'max-servers': 4 })])];
  const launcher = await world.launcher(sections, 'launcher1', { fairShares: shares({ a: 1, b: 99 }) });
  const contention = new Contention(world, launcher);
  const hold = (): number => 60;
  const b = [{ tenant: 'b', labels: ['small'], backlog: 5, hold }];
  // Tenant a always has more than its share.
  const kept = await world.served(['small'], { tenant: 'a' });
  await contention.run(b, 60);
  await world.submit(['other', 'other'], { tenant: 'a', priority: 300 });
  await contention.run(b, 300);
  const urgent = await world.submit(['large', 'large', 'large'], { tenant: 'a', priority: 200 });
  await contention.run(b, 1200);
  expect(world.stateOf(urgent)).toBe('fulfilled');
  await world.giveBack(kept);
});
