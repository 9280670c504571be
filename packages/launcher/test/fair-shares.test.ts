/** Tests that tenants get their shares of scarce capacity, and that nothing else changes. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { DecisionLog } from '@nodepool/status';
import { explainRequest } from '@nodepool/status/web';
import { PAST_USE_PATH } from '../src/fairness/past-use.js';
import { Contention, shares } from './support/contention.js';
import { pool, provider, World, type RunningLauncher } from './support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const section = (maxServers: number): JsonObject[] => [
  provider('demo', [pool('main', ['small', 'large'], { 'max-servers': maxServers })]),
];
const hold = (): number => 60 + 60 * world.random.next();

/** Returns the ids of the requests in the order in which they are accepted from now on. */
function acceptances({ store }: RunningLauncher): string[] {
  const accepted: string[] = [];
  store.requests.onChange(({ id, before, after }) => {
    if (before?.request.state === 'requested' && after?.request.state === 'pending') accepted.push(id);
  });
  return accepted;
}

describe('tenants in contention', () => {
  it('lend their unused shares, and get them back', async () => {
    const launcher = await world.launcher(section(8), 'launcher1', { fairShares: shares({ a: 1, b: 1 }) });
    const b = { tenant: 'b', labels: ['small'], backlog: 10, hold };
    const alone = new Contention(world, launcher);
    await alone.run([b], 600);
    expect(alone.nodeSeconds / 600).toBeGreaterThan(7);
    const both = alone;
    await both.run([{ tenant: 'a', labels: ['small'], backlog: 3, hold }, b], 600);
    expect(both.longestWait.get('a')).toBeLessThan(240);
    expect(both.parts()['a']).toBeGreaterThan(0.5);
  });

  it('gain nothing by a thousand projects', async () => {
    const launcher = await world.launcher(section(8), 'launcher1', { fairShares: shares({}) });
    const contention = new Contention(world, launcher);
    let projects = 0;
    const project = (): string => `project-${(projects += 1) % 1000}`;
    await contention.run(
      [
        { tenant: 'many', labels: ['small'], backlog: 40, hold, project },
        { tenant: 'one', labels: ['small'], backlog: 4, hold, project: () => 'only' },
      ],
      1800,
    );
    expect(contention.parts()['many']).toBeCloseTo(0.5, 1);
  });

  it('divide their shares equally among their projects', async () => {
    const launcher = await world.launcher(section(8), 'launcher1', { fairShares: shares({}) });
    const contention = new Contention(world, launcher);
    const of = { tenant: 'a', labels: ['small'], hold };
    await contention.run(
      [
        { ...of, backlog: 40, project: () => 'busy' },
        { ...of, backlog: 4, project: () => 'calm' },
      ],
      1800,
    );
    expect(contention.parts(contention.byProject)['busy']).toBeCloseTo(0.5, 1);
  });

  it('are served although their requests are large', async () => {
    const launcher = await world.launcher(section(8), 'launcher1', { fairShares: shares({ a: 1, b: 1, c: 1 }) });
    const contention = new Contention(world, launcher);
    await contention.run(
      [
        { tenant: 'a', labels: Array.from({ length: 7 }, () => 'small'), backlog: 1, hold },
        { tenant: 'b', labels: ['small'], backlog: 10, hold },
        { tenant: 'c', labels: ['large'], backlog: 10, hold },
      ],
      3600,
    );
    expect(contention.longestWait.get('a')).toBeLessThan(1200);
    expect(contention.longestWait.get('b')).toBeLessThan(1200);
  });
});

describe('the order of fair shares', () => {
  it('lets priorities decide within a tenant only', async () => {
    const launcher = await world.launcher(section(1), 'launcher1', { fairShares: shares({ a: 1, b: 1 }) });
    const blocking = await world.served(['small'], { tenant: 'b' });
    const urgent = await world.submit(['small'], { tenant: 'b', priority: 100 });
    const late = await world.submit(['small'], { tenant: 'a', priority: 300 });
    const early = await world.submit(['large'], { tenant: 'a', priority: 200 });
    const accepted = acceptances(launcher);
    // The past use of tenant b, which has none now, decides.
    await world.clock.advance(1000);
    await world.giveBack(blocking);
    await world.until('one of them is accepted', () => accepted.length > 0);
    expect(accepted).toEqual([early]);
    for (const id of [urgent, late]) expect(world.stateOf(id)).toBe('requested');
  });

  it('is explained', async () => {
    const decisions = new DecisionLog({ clock: world.clock });
    world.observation = { decisions };
    const launcher = await world.launcher(section(2), 'launcher1', { fairShares: shares({ a: 1, b: 3 }) });
    const blocking = [await world.served(['small'], { tenant: 'b' }), await world.served(['small'], { tenant: 'b' })];
    const second = await world.submit(['small'], { tenant: 'b', priority: 100 });
    const first = await world.submit(['small'], { tenant: 'a' });
    await world.clock.advance(2000);
    const summaryOf = (id: string): string | undefined =>
      explainRequest(world.explanation(launcher, decisions), id)?.summary;
    expect(summaryOf(first)).toContain('In the order of fair shares, 1st: tenant a has 0 % of 25 %.');
    expect(summaryOf(second)).toContain('2nd: tenant b has ');
    expect(summaryOf(second)).toContain(' % of 75 %.');
    for (const id of blocking) await world.giveBack(id);
  });

  it('begins and ends with the configuration', async () => {
    const launcher = await world.launcher(section(1));
    const blocking = await world.served(['small'], { tenant: 'b' });
    const ofB = await world.submit(['small'], { tenant: 'b' });
    const ofA = await world.submit(['small'], { tenant: 'a' });
    const orderOf = (id: string): string | undefined => launcher.launcher.queuePosition(id)?.order;
    expect(orderOf(ofA)).toBeUndefined();
    await world.during(launcher.launcher.apply(world.config(section(1), { fairShares: shares({}) })));
    expect(orderOf(ofA)).toBe('1st: tenant a has 0 % of 50 %');
    await world.during(launcher.launcher.apply(world.config(section(1))));
    expect(orderOf(ofA)).toBeUndefined();
    const accepted = acceptances(launcher);
    await world.giveBack(blocking);
    await world.fulfilled(ofB);
    expect(accepted).toEqual([ofB]);
  });
});

describe('the past use of tenants', () => {
  it('survives a restart', async () => {
    const config = { fairShares: shares({ a: 1, b: 1 }) };
    const first = await world.launcher(section(2), 'launcher1', config);
    const used = [await world.served(['small'], { tenant: 'b' }), await world.served(['small'], { tenant: 'b' })];
    await world.clock.advance(1_800_000);
    for (const id of used) await world.giveBack(id);
    await world.clock.advance(60_000);
    await first.stop();
    const second = await world.launcher(section(1), 'launcher2', config);
    const blocking = await world.served(['small'], { tenant: 'c' });
    const ofB = await world.submit(['small'], { tenant: 'b' });
    const ofA = await world.submit(['small'], { tenant: 'a' });
    const accepted = acceptances(second);
    await world.giveBack(blocking);
    await world.fulfilled(ofA);
    expect(accepted).toEqual([ofA]);
    await world.giveBack(ofA);
    await world.fulfilled(ofB);
  });

  it('begins anew if its znode cannot be read', async () => {
    await world.launcher(section(1));
    const zk = world.server.connect();
    await world.during(zk.create(PAST_USE_PATH, Buffer.from('{"at": "never"')));
    const launcher = await world.launcher(section(1), 'launcher2', { fairShares: shares({}) });
    await world.clock.advance(120_000);
    const { data } = await world.during(zk.get(PAST_USE_PATH));
    expect(JSON.parse(Buffer.from(data).toString())).toEqual({ at: expect.any(Number), entries: [] });
    expect(launcher.failures).toEqual([]);
    await world.during(zk.close());
  });
});
