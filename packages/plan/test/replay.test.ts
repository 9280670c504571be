/** Tests of replays: what they draw, count and say. */

import { describe, expect, it } from '@jest/globals';
import { exampleDriver } from '@nodepool/driver-example';
import { driver as metastatic } from '@nodepool/driver-metastatic';
import { staticDriver } from '@nodepool/driver-static';
import { plan, planText, readDay, type Day } from '../src/index.js';
import { replay } from '../src/replay.js';
import { configOf, siteConfig } from './support/site.js';

const START = 1_790_000_000;
const HOUR = 3600;

/** Requests at fixed intervals (s), and the further lines. */
function dayOf(count: number, intervalS: number, request: object, ...others: readonly object[]): Promise<Day> {
  const header = { kind: 'journal', version: 1, since: START, until: START + HOUR };
  const requests = Array.from({ length: count }, (_, index) => ({ created: START + index * intervalS, ...request }));
  return readDay([{ name: 'day', lines: [header, ...requests, ...others].map((line) => JSON.stringify(line)) }]);
}

/** A node of the journal, with one launch that took these seconds. */
function launched(launch: object, node: object = {}): object {
  const attempt = { at: START, pool: 'alpha/main', label: 'small', result: 'ready', ...launch };
  return {
    ...{ kind: 'node', id: JSON.stringify(launch), labels: ['small'], provider: 'alpha', pool: 'main' },
    ...{ attempts: [attempt], deleting: 5, ...node },
  };
}

const ONE_POOL = { alpha: { labels: ['small'], maxServers: 5 } };

describe('a replay', () => {
  it('measures waits, nodes, the use of limits and idle nodes', async () => {
    const day = await dayOf(10, 60, { label: 'small', held: 170 }, launched({ creating: 10, booting: 8, login: 2 }));
    const config = await siteConfig({
      providers: { alpha: { labels: ['small'], maxServers: 4 } },
      minReady: { small: 1 },
    });
    const { labels, pools, providers, failures } = await replay({ day, config, seed: 1 });
    // Each request uses the ready node, and another one is launched.
    expect(labels['small']).toMatchObject({ requests: 10, failed: 0, unanswered: 0, mostNodes: 4 });
    expect(labels['small']?.waitsMs.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => 0));
    expect(labels['small']?.usedHours).toBeCloseTo((10 * 170) / HOUR, 2);
    expect(pools['alpha/main']).toMatchObject({ limit: 4, mostNodes: 4 });
    expect(pools['alpha/main']?.atLimit).toBeGreaterThan(0.02);
    // It is idle except for the launches.
    expect(labels['small']?.idleHours).toBeGreaterThan(0.85);
    expect(providers['alpha']).toMatchObject({ started: 11, failed: 0 });
    expect(failures).toEqual({});
  });

  it('is the same for the same seed', async () => {
    const launches = [20, 30, 50].map((creating) => launched({ creating }));
    const day = await dayOf(20, 30, { label: 'small' }, { created: START, label: 'small', held: 90 }, ...launches);
    const config = await siteConfig({ providers: ONE_POOL });
    const [first, second, third] = [1, 1, 2].map((seed) => replay({ day, config, seed }));
    expect(await second).toEqual(await first);
    expect(await third).not.toEqual(await first);
  });

  it('fails launches as recorded, at the same time of the day', async () => {
    const failing = Array.from({ length: 100 }, (_, index) =>
      launched({ at: START + index, creating: 10, result: 'instance-failed' }),
    );
    const working = Array.from({ length: 100 }, (_, index) => launched({ at: START + 1800 + index, creating: 10 }));
    const early = { created: START + 10, label: 'small', held: 1 };
    const late = { created: START + 2700, label: 'small', held: 1 };
    const day = await dayOf(0, 0, {}, early, late, ...failing, ...working);
    const config = await siteConfig({ providers: ONE_POOL });
    const { labels, failures, providers } = await replay({ day, config, seed: 1 });
    expect(labels['small']).toMatchObject({ failed: 1, waitsMs: [10_000] });
    expect(providers['alpha']).toMatchObject({ started: 4, failed: 3 });
    expect(Object.keys(failures)).toEqual([expect.stringContaining('instance-failed, as in the journal')]);
  });

  it('delays requests during an outage of the cloud, and fails none', async () => {
    const outage = Array.from({ length: 100 }, (_, index) =>
      launched({ at: START + index * 9, creating: 2, result: 'transient' }),
    );
    const working = Array.from({ length: 100 }, (_, index) => launched({ at: START + 1000 + index, creating: 10 }));
    const day = await dayOf(3, 200, { label: 'small', held: 60 }, ...outage, ...working);
    const { labels } = await replay({ day, config: await siteConfig({ providers: ONE_POOL }), seed: 1 });
    expect(labels['small']).toMatchObject({ failed: 0, unanswered: 0 });
    const waits = labels['small']?.waitsMs ?? [];
    expect(waits).toHaveLength(3);
    expect(Math.min(...waits)).toBeGreaterThan(300_000);
    expect(Math.max(...waits)).toBeLessThan(1_500_000);
  });

  it('keeps to the limits that the cloud has reported, and to its resources', async () => {
    const limit = { kind: 'provider', provider: 'alpha', limit: { cores: 8 } };
    const node = launched({ creating: 1 }, { resources: { instances: 1, cores: 4 } });
    const day = await dayOf(4, 1, { label: 'small', held: 100 }, node, limit);
    const config = await siteConfig({ providers: ONE_POOL });
    const { labels, pools } = await replay({ day, config, seed: 1 });
    expect(pools['alpha/main']?.mostNodes).toBe(2);
    expect(labels['small']?.waitsMs.map((wait) => Math.round(wait / 1000))).toEqual([1, 1, 105, 105]);
  });

  it('cancels requests as recorded', async () => {
    const impatient = { id: '2', created: START + 1, labels: ['small'], result: 'cancelled', waited: 30 };
    const day = await dayOf(1, 1, { label: 'small', held: 500 }, impatient, launched({ creating: 1 }));
    const providers = { alpha: { labels: ['small'], maxServers: 1 } };
    const { labels } = await replay({ day, config: await siteConfig({ providers }), seed: 1 });
    expect(labels['small']).toMatchObject({ requests: 2, cancelled: 1, unanswered: 0, waitsMs: [1000] });
  });

  it('ends when the user interrupts it', async () => {
    const day = await dayOf(1, 1, { label: 'small', held: 500 });
    const signal = AbortSignal.abort(new Error('interrupted'));
    await expect(replay({ day, config: await siteConfig({ providers: ONE_POOL }), seed: 1, signal })).rejects.toThrow(
      'interrupted',
    );
  });
});

describe('a replay with machines and slots', () => {
  it('runs the code of their drivers, without looking up names', async () => {
    const file = {
      'zookeeper-servers': [{ host: 'localhost' }],
      labels: [{ name: 'small' }, { name: 'iron' }, { name: 'slot' }],
      providers: [
        {
          ...{ name: 'alpha', driver: 'example', 'cloud-images': [{ name: 'debian' }] },
          pools: [{ name: 'main', labels: [{ name: 'small', 'cloud-image': 'debian', size: 'small' }] }],
        },
        {
          ...{ name: 'rack', driver: 'static' },
          pools: [{ name: 'main', nodes: [{ name: 'rack1.example.org', labels: ['iron'], 'max-parallel-jobs': 2 }] }],
        },
        {
          ...{ name: 'meta', driver: 'metastatic' },
          pools: [{ name: 'main', labels: [{ name: 'slot', 'backing-label': 'small', 'max-parallel-jobs': 4 }] }],
        },
      ],
    };
    const lookups: string[] = [];
    const drivers = {
      example: exampleDriver(),
      static: staticDriver({
        resolve: async (name) => {
          lookups.push(name);
          return { publicIpv4: name };
        },
      }),
      metastatic,
    };
    const iron = { label: 'iron', held: 100 };
    const slots = [1, 2, 3].map((created) => ({ created: START + created, label: 'slot', held: 600 }));
    const day = await dayOf(4, 1, iron, ...slots, launched({ creating: 20 }));
    const { labels, pools } = await replay({ day, config: await configOf(file, drivers), seed: 1 });
    // Two slots for four requests.
    const waits = labels['iron']?.waitsMs.map((wait) => Math.round(wait / 1000)) ?? [];
    expect(waits[1]).toBeLessThan(2);
    expect(waits[2]).toBeGreaterThanOrEqual(98);
    expect(lookups.length).toBeGreaterThan(0);
    expect(new Set(lookups)).toEqual(new Set(['198.18.0.1']));
    // Three slots of one backing node.
    expect(labels['slot']).toMatchObject({ requests: 3, failed: 0, unanswered: 0 });
    expect(pools['alpha/main']).toMatchObject({ mostNodes: 1 });
  });
});

describe('a plan', () => {
  it('compares two configurations, and names what it rests on', async () => {
    const recorded = { result: 'fulfilled', waited: 70 };
    const day = await dayOf(20, 60, { label: 'small', held: 300, ...recorded }, launched({ creating: 20 }));
    const other = { beta: { labels: ['small'] }, alpha: { labels: ['small'], maxServers: 2 } };
    const result = await plan({
      ...{ day, runs: 2 },
      configurations: [
        { name: 'in force', config: await siteConfig({ providers: { alpha: { labels: ['small'], maxServers: 2 } } }) },
        { name: 'new', config: await siteConfig({ providers: other }) },
      ],
    });
    expect(result.recorded).toEqual({ small: { requests: 20, p50: 70, p95: 70, failed: 0 } });
    expect(result.changes).toEqual([
      expect.stringMatching(/^Label small: the median of the waits falls from \d+ min to 20 s\.$/),
      expect.stringMatching(/^Label small: p95 of the waits falls from \d+ min to 20 s\.$/),
      expect.stringMatching(/^Pool beta\/main has up to \d nodes; it had none\.$/),
    ]);
    expect(result.assumptions).toEqual(
      expect.arrayContaining([
        'No launch of label small in provider beta was observed: its launches are drawn from the other providers of ' +
          'the label.',
        'The limits of the cloud of provider alpha are not known: only those of its pools apply.',
      ]),
    );
    const text = planText(result);
    expect(text).toMatch(
      /^20 requests from 2026-09-21T\S+ to \S+, 1 observed launches, 2 runs of each configuration$/m,
    );
    expect(text).toMatch(/^\| small \| recorded \| 20 +\| 70 s +\| 70 s +\| 0 /m);
    expect(text).toMatch(/^\| small \| new +\| 20 +\| 20 s +\| 20 s +\| 0 /m);
    expect(text).toContain('What this rests on:\n- ');
  });
});
