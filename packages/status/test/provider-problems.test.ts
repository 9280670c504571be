/** Tests of the problems of providers, pools, nodes and other launchers that the status page names. */

import { describe, expect, it } from '@jest/globals';
import type { RecentLaunches } from '../src/history/provider-failures.js';
import { findProblems } from '../src/documents/problems/index.js';
import type { LauncherFacts } from '../src/documents/problems/sources.js';
import { nodeEntry } from './fixtures.js';
import { group, HEALTHY, NOW, provider, titles } from './problem-fixtures.js';

describe('providers', () => {
  it('name the requests that wait for them, in the right number', () => {
    const providers = [provider('cloud', { state: 'unreachable', reason: 'no answer' })];
    const effect = (count: number): (string | null)[] =>
      findProblems({ ...HEALTHY, providers, reasons: [group({ count, oldest: NOW })] }).map(
        (problem) => problem.effect,
      );
    expect(effect(1)).toEqual(['1 request waits for it']);
    expect(effect(61)).toEqual(['61 requests wait for it']);
    const accepted = new Map([['cloud', 1]]);
    const [hanging] = findProblems({ ...HEALTHY, providers, accepted, reasons: [group({ oldest: NOW })] });
    expect(hanging?.effect).toBe('1 request waits for it, 1 request hangs on it');
  });

  it('are distinguished from others whose names start the same way', () => {
    const providers = [provider('cloud', { state: 'degraded' })];
    const reasons = [group({ pool: 'cloud-2/main', oldest: NOW })];
    expect(findProblems({ ...HEALTHY, providers, reasons })[0]?.effect).toBeNull();
  });

  it('that are starting are a problem after five minutes', () => {
    expect(titles({ providers: [provider('cloud', { state: 'starting' })] })).toEqual([]);
    const slow = provider('cloud', { state: 'starting', since: NOW - 301 });
    expect(titles({ providers: [slow] })).toEqual(['warning: Provider cloud is still starting']);
  });
});

it('ready nodes that no pool hands out are a problem of their provider, and are named', () => {
  const stranded = [
    ...['01', '02', '03', '04', '05', '06', '07'].map((id) => nodeEntry(id, { pool: 'former' })),
    nodeEntry('08', { type: ['small', 'arm'] }),
    nodeEntry('09', { provider: 'other', pool: 'former' }),
    nodeEntry('10', { type: ['big'] }),
    nodeEntry('11', { type: ['tiny'] }),
    nodeEntry('12', { type: ['huge'] }),
  ];
  const [cloud, other] = findProblems({ ...HEALTHY, stranded });
  expect(cloud).toEqual({
    kind: 'stranded-nodes',
    severity: 'warning',
    key: 'stranded cloud',
    title: 'Provider cloud has 11 ready nodes that no pool hands out',
    subject: { kind: 'provider', id: 'cloud' },
    since: null,
    cause: 'configuration',
    details: [
      'pool former, label small: 01, 02, 03, 04, 05 and 2 more',
      'pool main, label small, arm: 08',
      'pool main, label big: 10',
      'and 2 more',
    ],
    effect: 'no request gets them',
    remedy: 'Start the launcher of their pool, configure their pool and label again, or `nodepool delete ID`.',
  });
  expect(other?.title).toBe('Provider other has 1 ready node that no pool hands out');
});

it('backing nodes with damaged data are a problem of the provider of their slots', () => {
  const damage = 'its user_data is damaged: it is empty';
  const nodes = ['01', '02'].map((id) => ({ id, owner: 'NodePool:metastatic:slots', damage }));
  expect(findProblems({ ...HEALTHY, damagedBacking: nodes })).toMatchObject([
    {
      kind: 'damaged-backing-nodes',
      severity: 'warning',
      title: 'The data of 2 backing nodes of provider slots is damaged',
      subject: { kind: 'provider', id: 'slots' },
      details: [`01: ${damage}`, `02: ${damage}`],
    },
  ]);
});

it('missing instances are a critical problem of a provider, whether it is degraded or not', () => {
  const missingInstances = { missing: 14, total: 20, since: NOW - 300 };
  for (const state of ['serving', 'degraded'] as const) {
    const [first] = findProblems({ ...HEALTHY, providers: [provider('cloud', { state, missingInstances })] });
    expect(first).toMatchObject({
      severity: 'critical',
      title: 'The cloud of provider cloud does not list the instances of 14 nodes',
      since: NOW - 300,
      cause: 'cloud',
      details: ['14 of 20 nodes with an instance'],
    });
  }
});

describe('pools', () => {
  it('are reported at their limit after ten minutes of waiting, with the sum of their requests', () => {
    const reasons = [group({ count: 80 }), group({ text: 'full; two are needed.', count: 1, oldest: NOW - 5 })];
    expect(findProblems({ ...HEALTHY, reasons })).toMatchObject([
      { title: 'Pool cloud/main is at its limit', cause: 'limit', since: NOW - 700, effect: '81 requests wait for it' },
    ]);
    expect(titles({ reasons: [group({ oldest: NOW - 599 })] })).toEqual([]);
  });

  it('without capacity are reported once: as the outage of an unreachable provider', () => {
    const providers = [provider('cloud', { state: 'unreachable' })];
    expect(titles({ providers, reasons: [group({ phase: 'capacity' })] })).toHaveLength(1);
    expect(titles({ providers: [provider('cloud', {})], reasons: [group({ phase: 'capacity' })] })).toEqual([
      'warning: The cloud of pool cloud/main is out of capacity',
    ]);
  });
});

describe('deletions', () => {
  it('that do not end are a problem of their provider, with the last answer of the cloud', () => {
    const stuck = ['01', '02'].map((id) => ({
      entry: nodeEntry(id, { state: 'deleting', state_time: NOW - 1200 }),
      answer: 'deletion failed (409)',
    }));
    expect(findProblems({ ...HEALTHY, stuck })).toMatchObject([
      {
        ...{ kind: 'stuck-deletions', title: 'Provider cloud does not delete 2 nodes', since: NOW - 1200 },
        ...{ details: ['01: deletion failed (409)', '02: deletion failed (409)'] },
      },
    ]);
  });
});

describe('launches', () => {
  const failing = (more: Partial<RecentLaunches>): string[] => {
    const recent = { ended: 5, failed: 3, text: 'no host keys', last: (NOW - 10) * 1000, readySince: 0, minutes: 15 };
    return titles({ providers: [provider('cloud', {})], launches: new Map([['cloud', { ...recent, ...more }]]) });
  };

  it('are a problem if most have failed, until none has failed for some minutes', () => {
    expect(failing({})).toEqual(['warning: Most launches of provider cloud fail']);
    expect(failing({ ended: 6 })).toEqual([]);
    expect(failing({ ended: 2, failed: 2 })).toEqual([]);
    expect(failing({ last: (NOW - 301) * 1000 })).toEqual([]);
  });

  it('that succeed again end it: three in a row, or one without a failure for half a minute', () => {
    const over = ['info: Most launches of provider cloud failed; it is over'];
    expect(failing({ readySince: 3, ended: 7 })).toEqual(over);
    expect(failing({ readySince: 1 })).toEqual(['warning: Most launches of provider cloud fail']);
    expect(failing({ readySince: 1, last: (NOW - 30) * 1000 })).toEqual(over);
    expect(failing({ readySince: 100, ended: 103, last: (NOW - 60) * 1000 })).toEqual(over);
    expect(failing({ readySince: 1, last: (NOW - 301) * 1000 })).toEqual([]);
  });
});

describe('other launchers', () => {
  const launcher = (hostname: string, more: Partial<LauncherFacts> = {}): LauncherFacts => ({
    ...{ hostname, isOwn: hostname === 'nl01', unserved: {} },
    ...more,
  });
  const configured = (hostname: string, fingerprint: string, cloud: string, since = NOW - 600): LauncherFacts =>
    launcher(hostname, { configuration: { fingerprint, providers: { cloud }, since } });

  it('that lack a driver are named with the provider; this one names its own providers', () => {
    const unserved = { cloud: 'no package provides the driver' };
    const launchers = [launcher('nl01', { unserved }), launcher('nl02', { unserved })];
    expect(findProblems({ ...HEALTHY, launchers })).toMatchObject([
      {
        ...{ kind: 'launcher-without-driver', title: 'Launcher nl02 cannot serve 1 provider', launcher: 'nl02' },
        details: ['cloud: no package provides the driver'],
      },
    ]);
  });

  it('that see a provider in trouble are named, unless this one sees the same', () => {
    const trouble = {
      provider: 'cloud',
      hostname: 'nl02',
      state: 'unreachable',
      reason: 'no answer',
      since: NOW,
    } as const;
    const troubles = [trouble, trouble];
    const title = 'Launcher nl02 sees that provider cloud is unreachable';
    expect(titles({ troubles, providers: [provider('cloud', {})] })).toEqual([`warning: ${title}`]);
    expect(titles({ troubles, providers: [provider('cloud', { state: 'elsewhere' })] })).toEqual([
      `critical: ${title}`,
    ]);
    expect(titles({ troubles, providers: [provider('cloud', { state: 'unreachable' })] })).toEqual([
      'critical: Provider cloud is unreachable',
    ]);
  });

  it('that have another configuration of the same provider are named, after the time of a rollout', () => {
    const details = (...launchers: readonly LauncherFacts[]): readonly string[] =>
      findProblems({ ...HEALTHY, launchers }).flatMap((problem) => problem.details);
    expect(details(configured('nl01', 'aa', '1'), configured('nl02', 'aa', '1'), launcher('python'))).toEqual([]);
    expect(details(configured('nl01', 'aa', '1'), configured('nl02', 'bb', '2'))).toEqual([
      'provider cloud: 1 on nl01; 2 on nl02',
    ]);
    expect(details(configured('nl01', 'aa', '1'), configured('nl02', 'bb', '1'))).toEqual([
      'labels, disk images or limits: aa on nl01; bb on nl02',
    ]);
    expect(details(configured('nl01', 'aa', '1'), configured('nl02', 'bb', '2', NOW - 60))).toEqual([]);
    const other = launcher('nl02', {
      configuration: { fingerprint: 'bb', providers: { other: '2' }, since: NOW - 600 },
    });
    expect(details(configured('nl01', 'aa', '1'), other)).toEqual([]);
  });
});

it('machines that only some launchers cannot use are not out of service', () => {
  const machine = { labels: ['small'], slots: 2, reason: 'no route', since: NOW - 60 };
  const outOfService = [
    { ...machine, machine: 'rack1:22', onlyFor: [] },
    { ...machine, machine: 'rack2:22', onlyFor: ['nl01'] },
  ];
  const pool = {
    ...{ name: 'main', launchers: ['nl01', 'nl02'], labels: ['small'], usage: [], waiting: 0, deferred: 0 },
    ...{ paused: false, outOfCapacity: false, obstacles: [], offers: [], outOfService },
  };
  const problems = findProblems({ ...HEALTHY, providers: [provider('rack', { pools: [pool] })] });
  expect(problems).toMatchObject([
    { title: 'Pool rack/main has 1 machine out of service', details: ['rack1:22: no route'], effect: '2 nodes fewer' },
    {
      title: 'Pool rack/main has 1 machine that launcher nl01 cannot use',
      details: ['rack2:22: no route'],
      effect: 'only other launchers use them',
    },
  ]);
});
