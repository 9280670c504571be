/** Tests of the watch over launches that are much slower than others of their label. */

import { beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { SlowLaunches, type TimedLaunch } from '../../src/capacity/slow-launches.js';

interface Launch extends TimedLaunch {
  /** Age in seconds at which it was abandoned. */
  abandonedAt?: number;
  reason?: string;
}

let clock: VirtualClock;
let launches: SlowLaunches;
let healthy: Set<string>;
/** Pools whose launches can be served elsewhere. */
let movable: Set<string>;

beforeEach(() => {
  clock = new VirtualClock();
  launches = new SlowLaunches(clock, true);
  healthy = new Set(['a', 'b', 'c']);
  movable = new Set(['a', 'b', 'c']);
});

function begin(pool: string): Launch {
  const launch: Launch = launches.begin(
    { pool, label: 'small', zone: undefined, machineType: undefined },
    () => healthy.has(pool),
    {
      canMove: () => movable.has(pool),
      abandon: ({ message }) => {
        launch.abandonedAt = Math.round((clock.monotonic() - launch.startedAt) / 1000);
        launch.reason = message;
        launch.end(false);
      },
    },
  );
  return launch;
}

/** Launches one after another. */
async function launched(pool: string, seconds: number, count = 5): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    movable.clear();
    const launch = begin(pool);
    await clock.advance(seconds * 1000);
    launch.end(true);
  }
  movable = new Set(['a', 'b', 'c']);
}

/** Begins a launch every 5 s that succeeds after a minute in pool `b`, and returns one that never ends in `a` each. */
async function stuckBesideOthers(count: number): Promise<readonly Launch[]> {
  const stuck: Launch[] = [];
  for (let index = 0; index < count; index += 1) {
    stuck.push(begin('a'));
    const other = begin('b');
    clock.schedule(60_000, () => other.end(true));
    await clock.advance(5000);
  }
  return stuck;
}

describe('a single launch is abandoned', () => {
  const abandonedAt = async (pool: string): Promise<number | undefined> => {
    const launch = begin(pool);
    await clock.advance(2_000_000);
    launch.end(false);
    return launch.abandonedAt;
  };

  it('never without known durations', async () => {
    expect(await abandonedAt('a')).toBeUndefined();
  });

  it('after twice the usual duration of the fastest healthy offer, but not before two minutes', async () => {
    await launched('a', 100);
    await launched('b', 200);
    expect(await abandonedAt('c')).toBe(200);
    healthy.delete('a');
    expect(await abandonedAt('c')).toBe(400);
    await launched('b', 10, 20);
    expect(await abandonedAt('c')).toBe(120);
  });

  it('after twice the usual duration of its own offer', async () => {
    await launched('a', 60);
    await launched('b', 300);
    expect(await abandonedAt('b')).toBe(600);
  });

  it('later while launches of the other offers take longer than usual', async () => {
    await launched('a', 60);
    movable = new Set(['b']);
    const running = Array.from({ length: 5 }, () => begin('a'));
    const own = begin('b');
    await clock.advance(500_000);
    expect(own.abandonedAt).toBeUndefined();
    for (const launch of running) launch.end(false);
    await clock.advance(10_000);
    expect(own.abandonedAt).toBeLessThanOrEqual(502);
  });

  it('only when another offer can serve it', async () => {
    await launched('a', 60);
    movable.clear();
    const own = begin('b');
    await clock.advance(500_000);
    expect(own.abandonedAt).toBeUndefined();
    movable.add('b');
    await clock.advance(2000);
    expect(own.abandonedAt).toBe(502);
  });

  it('while pools with known durations are stopped', async () => {
    await launched('a', 100);
    launches.forget('a');
    expect(await abandonedAt('b')).toBeUndefined();
  });

  it('never without circuit breakers', async () => {
    launches = new SlowLaunches(clock, false);
    await launched('a', 60);
    expect(await abandonedAt('a')).toBeUndefined();
  });
});

describe('launches of a stuck offer are abandoned', () => {
  beforeEach(async () => {
    await launched('a', 80, 20);
    await launched('b', 60, 20);
  });

  it('together, when two take a quarter longer than the longest recent launch', async () => {
    const stuck = await stuckBesideOthers(25);
    // The second one is overdue at the age of 100 s, and the offer is checked every two seconds.
    expect(stuck.slice(0, 3).map(({ abandonedAt }) => abandonedAt)).toEqual([106, 101, 96]);
    const before = stuck.slice(0, 22);
    const ages = before.map(({ abandonedAt }) => abandonedAt);
    expect(ages).not.toContain(undefined);
    expect(stuck[3]?.reason).toMatch(/^the launch has taken 91 s; launches of this offer take much longer than usual/);
    // Ten every two seconds.
    const times = before.map(({ startedAt, abandonedAt = 0 }) => startedAt + abandonedAt * 1000);
    for (const time of new Set(times)) expect(times.filter((each) => each === time).length).toBeLessThanOrEqual(10);
    expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(4000);
  });

  it('together, if no other pool has launched anything yet', async () => {
    launches.forget('b');
    const stuck: Launch[] = [];
    for (let index = 0; index < 25; index += 1) {
      stuck.push(begin('a'));
      await clock.advance(5000);
    }
    expect(stuck.slice(0, 3).map(({ abandonedAt }) => abandonedAt)).toEqual([106, 101, 96]);
    expect(stuck.slice(0, 21).map(({ abandonedAt }) => abandonedAt)).not.toContain(undefined);
  });

  it('together, if it has launched nothing yet and takes twice as long as others', async () => {
    const stuck = Array.from({ length: 2 }, () => begin('c'));
    await clock.advance(60_000);
    stuck.push(begin('c'));
    await clock.advance(65_000);
    expect(stuck.map(({ abandonedAt }) => abandonedAt)).toEqual([120, 120, 60]);
  });

  it('not while launches that started later succeed there', async () => {
    const stuck = await stuckBesideOthers(10);
    begin('a').end(true);
    await clock.advance(200_000);
    // The limit of lone launches follows from the other offer.
    for (const { abandonedAt } of stuck) expect(abandonedAt).toBeGreaterThanOrEqual(160);
  });

  it('not while the other offers are as slow', async () => {
    const all = [...Array.from({ length: 5 }, () => begin('a')), ...Array.from({ length: 5 }, () => begin('b'))];
    await clock.advance(120_000);
    expect(all.map(({ abandonedAt }) => abandonedAt)).toEqual(all.map(() => undefined));
  });

  it('not while no other offer can serve them', async () => {
    movable.clear();
    const stuck = await stuckBesideOthers(30);
    expect(stuck.filter(({ abandonedAt }) => abandonedAt !== undefined)).toEqual([]);
    movable.add('a');
    await clock.advance(10_000);
    expect(stuck.filter(({ abandonedAt }) => abandonedAt === undefined)).toEqual([]);
  });

  it('and a later success counts as late if it took as long', async () => {
    for (const [ageMs, isLate] of [
      [99_000, false],
      [130_000, true],
    ] as const) {
      movable.clear();
      const launch = begin('a');
      await clock.advance(ageMs);
      expect(launch.end(true)).toBe(isLate);
    }
  });

  it('one by one while its breaker is not closed', async () => {
    healthy.delete('a');
    const [probe] = await stuckBesideOthers(1);
    const other = begin('b');
    await clock.advance(60_000);
    other.end(true);
    await clock.advance(60_000);
    expect(probe?.abandonedAt).toBe(100);
  });
});
