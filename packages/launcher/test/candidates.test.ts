/**
 * Tests that a request is declined only after every pool that could serve it has decided, including pools that are
 * starting.
 */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DecisionLog } from '@nodepool/status';
import { explainRequest } from '@nodepool/status/web';
import { sleep, TransientError, type Driver, type Provider } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { faultyDriver } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider } from './support/world.js';

const never = new AbortController().signal;

let world: World;
let decisions: DecisionLog;
/** Returns the methods of a provider that are replaced by faulty ones. */
let overrides: (provider: Provider) => Partial<Provider>;

beforeEach(() => {
  world = new World();
  decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
  overrides = () => ({});
});

afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const drivers = (): Partial<NodepoolConfig> => faultyDriver(world.cloud, (each) => overrides(each));

/** Creates the root znodes, so that requests can be submitted before a launcher has run. */
async function withoutLaunchers(): Promise<void> {
  const zk = world.server.connect();
  const prepare = async (): Promise<void> => {
    for (const path of ['/nodepool', REQUESTS]) await zk.create(path, Buffer.alloc(0));
    await zk.close();
  };
  await world.during(prepare());
}

async function ended(ids: readonly string[]): Promise<unknown[]> {
  const open = ['requested', 'pending'];
  await world.until('the requests have ended', () => ids.every((id) => !open.includes(String(world.stateOf(id)))));
  return ids.map((id) => world.stateOf(id));
}

const pools = (): unknown[] => [...world.records('/nodepool/components/pool').values()];
describe('a starting launcher', () => {
  const sections = [provider('fast', [pool('main', ['small'])]), provider('slow', [pool('main', ['large'])])];

  it('leaves requests to a provider that is still loading', async () => {
    overrides = (each) =>
      each.config.name === 'slow'
        ? { start: (context) => sleep(world.clock, 5000, never).then(() => each.start(context)) }
        : {};
    await withoutLaunchers();
    const ids: string[] = [];
    for (const label of ['large', 'small', 'large', 'small', 'large']) ids.push(await world.submit([label]));
    await world.launcher(sections, 'launcher1', drivers());
    expect(await ended(ids)).toEqual(ids.map(() => 'fulfilled'));
  });

  it('leaves requests to a provider that it starts in a later turn of the event loop', async () => {
    const others = Array.from({ length: 50 }, (_, index) => provider(`small-${index}`, [pool('main', ['small'])]));
    const { monotonic } = world.clock;
    let started = 0;
    world.clock.monotonic = () => monotonic.call(world.clock) + started * 100;
    const [example] = drivers().loadedDrivers!.values();
    const getProvider: Driver['getProvider'] = (config) => {
      started += 1;
      return example!.getProvider(config);
    };
    const loadedDrivers = new Map([['example', { ...example!, getProvider }]]);
    await withoutLaunchers();
    const id = await world.submit(['large']);
    const launcher = world.launcher([...others, sections[1]!], 'launcher1', { loadedDrivers });
    while (started < others.length) await world.clock.runNext();
    expect(pools()).not.toEqual([]);
    world.clock.monotonic = monotonic;
    await launcher;
    expect(await ended([id])).toEqual(['fulfilled']);
  });

  it('leaves requests to a pool whose labels load later than those of its siblings', async () => {
    overrides = (each) => ({
      getQuotaForLabel: async (of, label, call) => {
        await sleep(world.clock, label === 'large' ? 3000 : 1, call.signal);
        return each.getQuotaForLabel!(of, label, call);
      },
    });
    await withoutLaunchers();
    const ids = [await world.submit(['large']), await world.submit(['large']), await world.submit(['large'])];
    await world.launcher([provider('demo', [pool('a', ['small']), pool('b', ['large'])])], 'launcher1', drivers());
    expect(await ended(ids)).toEqual(ids.map(() => 'fulfilled'));
  });

  it('serves the requests that waited for a pool while the labels of its siblings still load', async () => {
    overrides = (each) => ({
      getQuotaForLabel: async (of, label, call) => {
        await sleep(world.clock, label === 'large' ? 20_000 : 1000, call.signal);
        return each.getQuotaForLabel!(of, label, call);
      },
    });
    await withoutLaunchers();
    const id = await world.submit(['small']);
    await world.launcher([provider('demo', [pool('a', ['small']), pool('b', ['large'])])], 'launcher1', drivers());
    expect(await ended([id])).toEqual(['fulfilled']);
    expect(world.records(REQUESTS).get(id)?.state_time).toBeLessThan(world.clock.now() / 1000 - 10);
  });

  it('registers every pool with its labels before any cloud answers, and reports when it serves', async () => {
    const seen: unknown[][] = [];
    overrides = (each) => ({
      start: async (context) => {
        await sleep(world.clock, 1000, never);
        seen.push(pools());
        await each.start(context);
      },
    });
    await world.launcher(sections, 'launcher1', drivers());
    const initializing = [
      { provider_name: 'fast', supported_labels: ['small'], state: 'initializing', paused: false },
      { provider_name: 'slow', supported_labels: ['large'], state: 'initializing', paused: false },
    ];
    expect(seen[0]).toMatchObject(initializing);
    expect(pools()).toMatchObject([{ state: 'running' }, { state: 'running' }]);
  });

  it('fails requests that no pool can serve, although a provider cannot be started', async () => {
    overrides = (each) =>
      each.config.name === 'slow' ? { start: () => Promise.reject(new TransientError('cut off')) } : {};
    await world.launcher(sections, 'launcher1', drivers());
    expect(await ended([await world.submit(['other'])])).toEqual(['failed']);
  });
});

describe('a provider that cannot be started', () => {
  const sections = [provider('good', [pool('main', ['small'])]), provider('away', [pool('main', ['small', 'large'])])];

  beforeEach(() => {
    overrides = (each) =>
      each.config.name === 'away' ? { start: () => Promise.reject(new TransientError('cut off')) } : {};
  });

  it('does not prevent readiness of its launcher, and others serve their requests', async () => {
    await world.launcher(sections, 'launcher1', drivers());
    expect(await ended([await world.submit(['small'])])).toEqual(['fulfilled']);
    expect(pools()).toContainEqual(expect.objectContaining({ provider_name: 'away', paused: true }));
  });

  it('serves waiting requests once it is started', async () => {
    await world.launcher(sections, 'launcher1', drivers());
    const id = await world.submit(['large']);
    await world.clock.advance(300_000);
    expect(world.stateOf(id)).toBe('requested');
    overrides = () => ({});
    expect(await ended([id])).toEqual(['fulfilled']);
    expect(pools()).not.toContainEqual(expect.objectContaining({ paused: true }));
  });

  it('declines them at the end of max-wait, with the reason', async () => {
    const labels = new Map([['large', { name: 'large', minReady: 0, maxReadyAgeMs: Infinity, maxWaitMs: 600_000 }]]);
    await world.launcher(sections, 'launcher1', { ...drivers(), labels });
    const id = await world.submit(['large']);
    await world.clock.advance(590_000);
    expect(world.stateOf(id)).toBe('requested');
    await world.clock.advance(20_000);
    expect(await ended([id])).toEqual(['failed']);
    expect(decisions.of('request', id)).toContainEqual(
      expect.objectContaining({ by: 'away/main', reason: expect.stringContaining('cut off') }),
    );
  });
});

describe('a pool that is missing in the registry', () => {
  it('delays requests, because its launcher may only have lost its session', async () => {
    await world.launcher([provider('one', [pool('main', ['small'])])], 'launcher1');
    const { zk } = await world.launcher([provider('two', [pool('main', ['large'])])], 'launcher2');
    const ids: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      world.server.expireSession(zk);
      ids.push(await world.submit(['large']));
      await world.clock.advance(7000);
    }
    expect(await ended(ids)).toEqual(ids.map(() => 'fulfilled'));
  });

  it('delays requests while its launcher restarts, for a limited time', async () => {
    await world.launcher([provider('one', [pool('main', ['small'])])], 'launcher1');
    const two = provider('two', [pool('main', ['large'])]);
    const running = await world.launcher([two], 'launcher2');
    await running.stop();
    const first = await world.submit(['large']);
    await world.clock.advance(20_000);
    const again = await world.launcher([two], 'launcher2');
    expect(await ended([first])).toEqual(['fulfilled']);
    await again.stop();
    const second = await world.submit(['large']);
    await world.clock.advance(290_000);
    expect(world.stateOf(second)).toBe('requested');
    await world.clock.advance(20_000);
    expect(world.stateOf(second)).toBe('failed');
  });

  it('delays requests while the machine of its launcher restarts; their launches continue', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    await world.launcher([provider('one', [pool('main', ['small'])])], 'launcher1');
    const two = provider('two', [pool('main', ['large'], { 'max-servers': 1 })]);
    const running = await world.launcher([two], 'launcher2');
    const pending = await world.submit(['large']);
    await world.until('its instance boots', () => world.cloud.existingInstances().length === 1);
    const waiting = await world.submit(['large']);
    await running.stop();
    await world.clock.advance(240_000);
    expect([pending, waiting].map((id) => world.stateOf(id))).toEqual(['pending', 'requested']);
    const launched = world.cloud.existingInstances().map(({ id }) => id);
    await world.launcher([two], 'launcher2');
    const [node = ''] = await world.fulfilled(pending);
    expect([world.nodes().get(node)?.external_id]).toEqual(launched);
    await world.giveBack(pending);
    await world.fulfilled(waiting);
  });

  it('delays no request that another launcher of the same pool declines', async () => {
    const same = provider('two', [pool('main', ['large'], { 'max-servers': 1 })]);
    const first = await world.launcher([same], 'launcher1');
    await world.launcher([same], 'launcher2');
    await first.stop();
    const id = await world.submit(['large', 'large']);
    await world.clock.advance(5000);
    expect(world.stateOf(id)).toBe('failed');
  });

  it('delays the requests that waited while all launchers restarted', async () => {
    const [one, two] = [provider('one', [pool('main', ['small'])]), provider('two', [pool('main', ['large'])])];
    await withoutLaunchers();
    const [served, lost] = [await world.submit(['large']), await world.submit(['medium'])];
    const first = await world.launcher([one], 'launcher1');
    await world.clock.advance(60_000);
    expect(explainRequest(world.explanation(first, decisions), served)?.summary).toMatch(
      /No registered pool has large\. one\/main: this pool has no label large; its launcher has just started and waits 5 min/,
    );
    expect(await ended([await world.submit(['other'])])).toEqual(['failed']);
    await world.launcher([two], 'launcher2');
    expect(await ended([served])).toEqual(['fulfilled']);
    await world.clock.advance(220_000);
    expect(world.stateOf(lost)).toBe('requested');
    // The second launcher has started later.
    await world.clock.advance(90_000);
    expect(world.stateOf(lost)).toBe('failed');
  });

  it('delays no request for a pool that its own launcher has removed since its start', async () => {
    const [two, three] = [provider('two', [pool('main', ['large'])]), provider('three', [pool('main', ['medium'])])];
    await withoutLaunchers();
    const waiting = await world.submit(['large']);
    const { launcher } = await world.launcher([two, three]);
    await world.fulfilled(waiting);
    await world.giveBack(waiting);
    await world.during(launcher.apply(world.config([three])));
    const id = await world.submit(['large']);
    await world.clock.advance(35_000);
    expect(world.stateOf(id)).toBe('failed');
  });

  it.each(['that returns without it', 'that continues without it'])(
    'delays requests for less time beside a launcher %s',
    async (launcher) => {
      await world.launcher([provider('one', [pool('main', ['small'])])], 'launcher1');
      const [two, three] = [provider('two', [pool('main', ['large'])]), provider('three', [pool('main', ['medium'])])];
      const running = await world.launcher([two, three], 'launcher2');
      if (launcher === 'that continues without it') {
        await world.during(running.launcher.apply(world.config([three])));
        await world.until('it is removed', () => pools().length === 2);
      } else {
        await running.stop();
        await world.clock.advance(60_000);
        await world.launcher([three], 'launcher2');
      }
      const id = await world.submit(['large']);
      await world.clock.advance(20_000);
      expect(world.stateOf(id)).toBe('requested');
      await world.clock.advance(15_000);
      expect(world.stateOf(id)).toBe('failed');
    },
  );
});

describe('a pool with a better priority', () => {
  const first = (more = {}): ReturnType<typeof provider> =>
    provider('first', [pool('main', ['small'], { priority: 1 })], more);
  const second = provider('second', [pool('main', ['small'], { priority: 2 })]);

  it('does not block the others if its provider is drained (max-concurrency: 0)', async () => {
    await world.launcher([first({ 'max-concurrency': 0 }), second]);
    const [node] = await world.fulfilled(await world.submit(['small']));
    expect(world.nodes().get(node!)).toMatchObject({ provider: 'second' });
  });

  it('does not block those of another launcher if its provider is drained', async () => {
    await world.launcher([second], 'launcher2');
    await world.launcher([first({ 'max-concurrency': 0 })], 'launcher1');
    const [node] = await world.fulfilled(await world.submit(['small']));
    expect(world.nodes().get(node!)).toMatchObject({ provider: 'second' });
  });

  it('precedes the others again once its provider is not drained any more', async () => {
    const { launcher } = await world.launcher([first({ 'max-concurrency': 0 }), second]);
    await world.served(['small']);
    await world.during(launcher.apply(world.config([first(), second])));
    await world.clock.advance(10_000);
    const [node] = await world.fulfilled(await world.submit(['small'], { reuse: false }));
    expect(world.nodes().get(node!)).toMatchObject({ provider: 'first' });
  });

  it('does not block a request for the provider of another pool', async () => {
    await world.launcher([first(), second]);
    const [node] = await world.fulfilled(await world.submit(['small'], { provider: 'second' }));
    expect(world.nodes().get(node!)).toMatchObject({ provider: 'second' });
  });

  it('does not block the others if no session owns its component', async () => {
    await world.launcher([second]);
    const zk = world.server.connect();
    const [path, component] = [...world.records('/nodepool/components/pool')][0]!;
    const left = { ...component, id: 'gone', provider_name: 'first', priority: 1 };
    await world.during(zk.create(`/nodepool/components/pool/${path}9`, Buffer.from(JSON.stringify(left))));
    await world.fulfilled(await world.submit(['small']));
    await world.during(zk.close());
  });
});
