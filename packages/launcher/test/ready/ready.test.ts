/** Tests of ready nodes by use, schedule and forecast, as seen in ZooKeeper and the cloud. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { NodepoolConfig, ReadySettings, TopLabelConfig } from '@nodepool/config';
import { DecisionLog } from '@nodepool/status';
import { explainLabel } from '@nodepool/status/web';
import { world, demo, MINUTE_MS, notes } from '../support/cleanup-world.js';

const IDLE_MS = 600_000;
const HOUR_MS = 3_600_000;
const DEMAND = '/nodepool/demand/small';

function labels(ready: Partial<ReadySettings>, more: Partial<TopLabelConfig> = {}): Partial<NodepoolConfig> {
  const settings = { min: 0, max: Infinity, spare: undefined, schedule: [], forecast: undefined, ...ready };
  const common = { name: 'small', minReady: 0, maxReadyAgeMs: Infinity, maxIdleMs: IDLE_MS, maxWaitMs: Infinity };
  return { labels: new Map([['small', { ...common, ready: settings, ...more }]]) };
}

function isFree({ state, allocated_to: request }: JsonObject): boolean {
  return state === 'ready' && request === null;
}

const free = (): string[] => [...world.nodes()].filter(([, node]) => isFree(node)).map(([id]) => id);
const untilFree = (count: number): Promise<void> =>
  world.until(`${count} nodes are free`, () => free().length === count);

/** Returns a function that returns the largest numbers of nodes that were not in use since the call. */
function trackMaximum(): () => number {
  let maximum = 0;
  world.server.onCommit(() => {
    const unused = [...world.nodes().values()].filter(({ state }) => state !== 'in-use');
    maximum = Math.max(maximum, unused.length);
  });
  return () => maximum;
}

async function useNode(): Promise<{ readonly release: () => Promise<void> }> {
  const id = await world.served(['small']);
  const taken = await world.during(world.requestor.take(id));
  return { release: () => world.during(world.requestor.giveBack(taken)) };
}

/** Starts two launchers whose clocks of events differ by the order of their connections. */
async function launchers(more: Partial<NodepoolConfig>): Promise<void> {
  await world.launcher([demo()], 'launcher1', more);
  await world.launcher([demo()], 'launcher2', more);
}

describe('spare', () => {
  it('follows use, exactly with two launchers, and surplus nodes are deleted once it has fallen for a while', async () => {
    await launchers(labels({ spare: { nodes: 2 }, max: 5 }));
    const most = trackMaximum();
    await untilFree(2);
    const first = await useNode();
    await untilFree(3);
    const second = await useNode();
    await untilFree(4);
    const others = [await useNode(), await useNode()];
    // Six would be two more than in use; the limit is five.
    await untilFree(5);
    await world.clock.advance(MINUTE_MS);
    expect(free()).toHaveLength(5);
    expect(most()).toBe(5);
    for (const each of [first, second, ...others]) await each.release();
    const fell = world.clock.now();
    await world.clock.advance(IDLE_MS - MINUTE_MS);
    expect(free()).toHaveLength(5);
    await untilFree(2);
    expect(world.clock.now() - fell).toBeGreaterThanOrEqual(IDLE_MS);
    await world.clock.advance(3 * IDLE_MS);
    expect(free()).toHaveLength(2);
    expect(world.cloud.existingInstances()).toHaveLength(2);
  });

  it('is explained', async () => {
    const decisions = new DecisionLog({ clock: world.clock });
    const running = await world.launcher([demo()], 'launcher1', labels({ spare: { nodes: 2 } }));
    await untilFree(2);
    await useNode();
    await untilFree(3);
    const explanation = explainLabel(world.explanation(running, decisions), 'small');
    expect(explanation?.summary).toContain(' It should have 3 ready nodes (2 spare above 1 in use).');
    expect(explanation?.facts).toMatchObject({ ready_target: 3, ready_target_reason: '2 spare above 1 in use' });
  });

  it('launches and deletes nothing more while use changes back and forth', async () => {
    await launchers(labels({ spare: { share: 1 }, min: 1 }));
    await untilFree(1);
    const first = await useNode();
    await untilFree(1);
    const second = await useNode();
    await untilFree(2);
    await second.release();
    await world.clock.advance(MINUTE_MS);
    const before = free();
    for (let time = 0; time < 2 * IDLE_MS; time += IDLE_MS / 2) {
      const again = await useNode();
      await untilFree(2);
      await again.release();
      await world.clock.advance(IDLE_MS / 2);
      // The used node was replaced; no other node has changed.
      expect(free()).toHaveLength(2);
    }
    expect(before).toHaveLength(2);
    await first.release();
    await untilFree(1);
  });
});

describe('a schedule', () => {
  it('changes the number of ready nodes at its times, with two launchers', async () => {
    const [from, until] = [world.clock.now() + HOUR_MS, world.clock.now() + 3 * HOUR_MS];
    const entry = { cron: pattern(from), until: pattern(until), timezone: 'UTC', min: 4 };
    await launchers(labels({ min: 1, schedule: [entry] }));
    const most = trackMaximum();
    await untilFree(1);
    await world.clock.advance(minuteOf(from) - 1 - world.clock.now());
    expect(free()).toHaveLength(1);
    await untilFree(4);
    expect(world.clock.now() - minuteOf(from)).toBeLessThan(MINUTE_MS);
    await world.clock.advance(minuteOf(until) - 1 - world.clock.now());
    expect(free()).toHaveLength(4);
    await world.clock.advance(IDLE_MS);
    expect(free()).toHaveLength(4);
    await untilFree(1);
    await world.clock.advance(HOUR_MS);
    expect([free().length, most()]).toEqual([1, 4]);
  });
});

function minuteOf(time: number): number {
  return Math.floor(time / MINUTE_MS) * MINUTE_MS;
}

function pattern(time: number): string {
  const date = new Date(time);
  return `${date.getUTCMinutes()} ${date.getUTCHours()} * * *`;
}

describe('a forecast', () => {
  const forecast = { servedAtOnce: 0.9, affordable: Infinity };

  /** Requests nodes at an even rate, and returns each at once. */
  async function demand(quarters: number, perQuarter: number): Promise<void> {
    for (let index = 0; index < quarters * perQuarter; index += 1) {
      await (await useNode()).release();
      await world.clock.advance(900_000 / perQuarter);
    }
  }

  const forecasts = (): JsonObject[] =>
    [...world.records('/nodepool/components/launcher').values()].flatMap(({ forecasts: all }) =>
      all === undefined ? [] : [all as JsonObject],
    );

  it('learns the demand, is published by one launcher, and survives the restart of all launchers', async () => {
    const more = labels({ forecast, max: 3 });
    const running = [
      await world.launcher([demo()], 'launcher1', more),
      await world.launcher([demo()], 'launcher2', more),
    ];
    await world.clock.advance(MINUTE_MS);
    await demand(4, 6);
    await untilFree(1);
    // One more, within a quarter of an hour that goes on when the launchers stop.
    await (await useNode()).release();
    expect(forecasts().filter((each) => each['small'] !== undefined)).toHaveLength(1);
    for (const launcher of running) await launcher.stop();
    const stored = [...world.records(DEMAND).values()];
    const counted = stored.flatMap(({ quarters }) => quarters as unknown as [number, number][]);
    expect(counted.reduce((sum, [, count]) => sum + count, 0)).toBe(25);
    const { launcher } = await world.launcher([demo()], 'launcher3', more);
    await world.until('the forecast is back', () => (launcher.readyTarget('small')?.count ?? 0) > 0);
    expect(launcher.readyTarget('small')?.reason).toBe('forecast to serve 90 % at once');
    await untilFree(launcher.readyTarget('small')?.count ?? 0);
    expect([...world.records(DEMAND)].map(([id]) => id)).toHaveLength(stored.length);
  });

  it('counts a request once that several launchers see one after another', async () => {
    const full = { labels: labels({ forecast }).labels ?? new Map() };
    world.cloud.configure({ quota: { instances: 0, cores: Infinity, ram: Infinity } });
    for (const host of ['launcher1', 'launcher2', 'launcher3']) {
      const launcher = await world.launcher([demo()], host, full);
      await world.clock.advance(MINUTE_MS);
      if (host === 'launcher1') await world.submit(['small', 'small']);
      await world.clock.advance(MINUTE_MS);
      await launcher.stop();
    }
    const [day] = world.records(DEMAND).values();
    expect(day?.['quarters']).toEqual([[Math.floor(world.clock.now() / 900_000), 2, [1, 1]]]);
  });

  it('deletes records of demand that are four weeks old, and nothing else', async () => {
    const { zk, stop } = await world.launcher([demo()], 'launcher1', labels({}));
    const today = Math.floor(world.clock.now() / 86_400_000);
    const names = [today - 28, today - 27, today - 26, `x${today - 90}`, `${today - 90}a`];
    for (const path of ['/nodepool/demand', DEMAND, '/nodepool/demand/large', `/nodepool/demand/large/${today - 90}`])
      await world.during(zk.create(path));
    for (const name of names) await world.during(zk.create(`${DEMAND}/${name}`, Buffer.from('{}')));
    const first = await world.launcher([demo()], 'launcher2', labels({ forecast }));
    await stop();
    const reader = first.zk;
    await world.clock.advance(25 * HOUR_MS);
    const { children } = await world.during(reader.children(DEMAND));
    expect([...children].sort()).toEqual([...names.slice(1).map(String), String(today), String(today + 1)].sort());
    expect((await world.during(reader.children('/nodepool/demand/large'))).children).toEqual([String(today - 90)]);
    expect(notes.some(({ message }) => message === 'Deleted old records of demand')).toBe(true);
  });

  it('is read again, and counted on, if another program has changed the record', async () => {
    await world.launcher([demo()], 'launcher1', labels({ forecast }));
    await demand(2, 2);
    const [day = ''] = world.records(DEMAND).keys();
    await world.during(world.requestor.change(`${DEMAND}/${day}`, { note: 'changed' }));
    await demand(4, 2);
    const quarters = world.records(DEMAND).get(day)?.['quarters'] as unknown as unknown[];
    expect(quarters.length).toBeGreaterThan(2);
  });
});
