/** Tests of the problems that the status page names, with their cause, effect and remedy. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { RecentLaunches } from '../src/history/provider-failures.js';
import type { RefusalCause } from '../src/facts/timeline-recorder.js';
import type { ImageStatus, LabelStatus, Problem, ProviderStatus, ReasonGroup } from '../src/client/model.js';
import { findProblems } from '../src/documents/problems/index.js';
import { nodeEntry } from './fixtures.js';
import type { LauncherFacts, ProblemSources } from '../src/documents/problems/sources.js';

const NOW = 1_800_000_000;

const HEALTHY: ProblemSources = {
  zookeeper: { state: 'connected', since: NOW - 500, lastProblem: undefined },
  complete: true,
  configuration: { problems: [], count: 0, since: null },
  unreadable: { records: [], count: 0 },
  providers: [],
  suspensions: [],
  stranded: [],
  damagedBacking: [],
  launchers: [],
  troubles: [],
  stuck: [],
  labels: [],
  reasons: [],
  accepted: new Map(),
  failed: new Map(),
  images: [],
  launches: new Map(),
  builders: 1,
  now: NOW,
};

function provider(name: string, more: Partial<ProviderStatus>): ProviderStatus {
  return {
    ...{
      name,
      driver: 'example',
      driverVersion: '1.0.0',
      state: 'serving',
      reason: null,
      cause: null,
      since: NOW - 60,
    },
    ...{ launches: null, lastError: null, failures: [], usage: [], api: null, pools: [], missingInstances: null },
    groups: { building: 0, ready: 0, 'in use': 0, held: 0, leaving: 0, failed: 0 },
    toNode: { count: 0, p50: null, p95: null },
    ...more,
  };
}

function group(more: Partial<ReasonGroup>): ReasonGroup {
  return { phase: 'limit', pool: 'cloud/main', text: 'full.', count: 1, oldest: NOW - 700, labels: ['small'], ...more };
}

function image(more: Partial<ImageStatus>): ImageStatus {
  return {
    ...{ name: 'debian', paused: false, requested: null, builds: [], uploads: [], lastFailure: null },
    labels: ['small'],
    ...more,
  };
}

const label = (more: Partial<LabelStatus>): LabelStatus => ({
  ...{ name: 'small', ready: 0, building: 0, inUse: 0, total: 0, waiting: 0, oldest: null },
  ...{ readyTarget: 0, readyReason: null },
  ...{ maxAge: null, minRetention: null },
  ...{ toNode: { count: 0, p50: null, p95: null }, pools: [], reason: null },
  ...more,
});

const upload = {
  ...{ provider: 'cloud', build: 'b', id: '1', progress: null, externalName: null, failure: null },
  review: null,
};
const build = { id: 'b', builder: 'nb01', formats: [], failure: null, duration: null };
const failure = { text: 'exit code 1', time: NOW - 100, log: '/var/log/b.log', builder: 'nb01' };

const titles = (sources: Partial<ProblemSources>): string[] =>
  findProblems({ ...HEALTHY, ...sources }).map(({ severity, title }) => `${severity}: ${title}`);

it('a healthy Nodepool has no problems', () => {
  const ready = image({ uploads: [{ ...upload, state: 'ready', since: NOW }] });
  expect(titles({ providers: [provider('cloud', {})], labels: [label({})], images: [ready] })).toEqual([]);
});

it('problems are sorted by severity, then age', () => {
  const providers = [
    provider('young', { state: 'degraded', since: NOW - 10 }),
    provider('old', { state: 'degraded', since: NOW - 1000 }),
    provider('dead', { state: 'unreachable', since: NOW - 5 }),
  ];
  expect(titles({ providers })).toEqual([
    'critical: Provider dead is unreachable',
    'warning: Provider old is degraded',
    'warning: Provider young is degraded',
  ]);
});

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
    remedy: 'Delete them with `nodepool delete ID`, or configure their pool and label again.',
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

describe('images', () => {
  it('that no provider has are critical while requests wait for their labels', () => {
    expect(titles({ images: [image({})] })).toEqual(['warning: Image debian is missing']);
    const reasons = [group({ phase: 'image', count: 15 })];
    expect(findProblems({ ...HEALTHY, images: [image({ lastFailure: failure })], reasons })).toMatchObject([
      { severity: 'critical', effect: '15 requests wait for it', details: ['exit code 1'] },
    ]);
    expect(titles({ images: [image({ labels: [] })] })).toEqual([]);
  });

  it('that are missing have a time, also while no request waits', () => {
    const since = (more: Partial<ImageStatus>): (number | null)[] =>
      findProblems({ ...HEALTHY, images: [image(more)] }).map((problem) => problem.since);
    expect(since({ lastFailure: failure })).toEqual([NOW - 100]);
    expect(since({ requested: NOW - 7 })).toEqual([NOW - 7]);
    expect(since({ builds: [{ ...build, state: 'building', since: NOW - 300 }], lastFailure: failure })).toEqual([
      NOW - 300,
    ]);
    const gone = { ...upload, state: 'ready', since: NOW - 90_000, failure: 'the cloud does not list the image' };
    const builds = [{ ...build, state: 'ready', since: NOW - 90_000 }];
    const again = { ...upload, id: '2', state: 'uploading', since: NOW - 20 };
    const old = { ...failure, time: NOW - 100_000 };
    expect(since({ builds, uploads: [again, gone], lastFailure: old })).toEqual([NOW - 20]);
    expect(since({})).toEqual([null]);
  });

  it('whose last build failed are reported until a build succeeds', () => {
    const uploads = [{ ...upload, state: 'ready', since: NOW - 300_000 }];
    const old = { ...build, state: 'ready', since: NOW - 3 * 86_400 };
    expect(
      findProblems({ ...HEALTHY, images: [image({ uploads, lastFailure: failure, builds: [old] })] }),
    ).toMatchObject([
      {
        title: 'The last build of image debian failed',
        effect: 'nodes use a build that is 3 days old',
        remedy: 'Read /var/log/b.log on nb01. `nodepool image-build debian` starts a build.',
      },
    ]);
    const young = { ...build, state: 'ready', since: NOW - 50 };
    expect(titles({ images: [image({ uploads, lastFailure: failure, builds: [young] })] })).toEqual([]);
  });

  it('whose upload failed are reported until a later one succeeds', () => {
    const failed = { ...upload, state: 'failed', since: NOW - 100 };
    const ready = (since: number): ImageStatus =>
      image({ uploads: [failed, { ...upload, id: '2', state: 'ready', since }] });
    expect(titles({ images: [ready(NOW - 500)] })).toEqual(['warning: The upload of image debian to cloud failed']);
    expect(titles({ images: [ready(NOW - 50)] })).toEqual([]);
  });
});

describe('images with tests', () => {
  const reviewed = (standing: string, since: number, more: object = {}): ImageStatus['uploads'][number] => ({
    ...{ ...upload, state: 'ready', since, ...more },
    review: { standing, since, by: 'ada', reason: 'no sshd', pinned: null, trial: null },
  });
  const current = reviewed('current', NOW - 500_000, { id: '2', build: 'a' });

  it('are reported while the newest upload is rejected', () => {
    const uploads = [reviewed('rejected', NOW - 100), current];
    expect(findProblems({ ...HEALTHY, images: [image({ uploads })] })).toMatchObject([
      {
        kind: 'image-rejected',
        severity: 'warning',
        title: 'The new image debian is rejected at cloud',
        details: ['build b: no sshd'],
        effect: 'nodes of this provider use an older build',
      },
    ]);
    const newer = reviewed('current', NOW - 50, { id: '3', build: 'c' });
    expect(titles({ images: [image({ uploads: [newer, ...uploads.slice(0, 1)] })] })).toEqual([]);
  });

  it('are reported as missing if every upload is rejected', () => {
    const images = [image({ uploads: [reviewed('rejected', NOW - 100)] })];
    expect(titles({ images })).toContain('warning: Image debian is missing');
  });

  it('say that requests wait if there is no older upload, and for what', () => {
    const effects = (...uploads: ImageStatus['uploads']): (string | null | undefined)[] =>
      findProblems({ ...HEALTHY, images: [image({ uploads })] })
        .filter(({ kind }) => kind === 'image-rejected' || kind === 'image-waits')
        .map(({ effect }) => effect);
    const waits = 'there is no older build: requests for its labels get no node of this provider until';
    const elsewhere = { ...current, provider: 'other' };
    expect(effects(reviewed('rejected', NOW - 100), elsewhere)).toEqual([`${waits} another build is uploaded`]);
    expect(effects(reviewed('canary', NOW - 90_000, { id: '2', build: 'c' }))).toEqual([
      `${waits} build c has passed its tests`,
    ]);
  });

  it('are reported once a test has lasted for a day', () => {
    const waiting = (seconds: number): string[] =>
      titles({ images: [image({ uploads: [reviewed('canary', NOW - seconds), current] })] });
    expect(waiting(80_000)).toEqual([]);
    expect(waiting(90_000)).toEqual(['warning: The new image debian has been in the stage canary at cloud for a day']);
  });
});

it('a label without pool is critical while a request waits for it', () => {
  const reason = {
    phase: 'none',
    text: '',
    pool: null,
    launcher: null,
    since: NOW,
    missing: null,
    heldBy: [],
    heldByMore: 0,
  } as const;
  expect(titles({ labels: [label({ waiting: 6, reason })] })).toEqual(['critical: No pool has the label small']);
  expect(titles({ labels: [label({ waiting: 0 })] })).toEqual([]);
});

it('a long list of problems ends with the number of omitted ones', () => {
  const [problem] = findProblems({ ...HEALTHY, configuration: { problems: ['a', 'b'], count: 12, since: null } });
  expect(problem?.details).toEqual(['a', 'b', 'and 10 more']);
});

it('a lost ZooKeeper comes before older problems, with the time and the last error', () => {
  const zookeeper = { state: 'suspended', since: NOW - 30, lastProblem: 'zk1:2181: connect ECONNREFUSED' };
  const providers = [provider('old', { state: 'unreachable', since: NOW - 1000 })];
  const [first] = findProblems({ ...HEALTHY, zookeeper, providers });
  expect(first).toMatchObject({ title: 'ZooKeeper is not connected', since: NOW - 30, severity: 'critical' });
  expect(first?.details).toContain('Last error: zk1:2181: connect ECONNREFUSED');
});

it('failed requests are a problem of their label, or of its missing image', () => {
  const requests = {
    count: 2,
    first: NOW - 50,
    last: NOW - 40,
    served: undefined,
    reason: 'cloud/main: no answer',
    cause: 'launch',
  } as const;
  const failed = new Map([['small', requests]]);
  const served = [label({ pools: ['cloud/main'] })];
  const [problem, ...others] = findProblems({ ...HEALTHY, failed, labels: served });
  expect(others).toEqual([]);
  expect(problem).toMatchObject({
    ...{ title: '2 requests for the label small failed', since: NOW - 50, cause: 'cloud' },
    details: ['cloud/main: no answer'],
  });
  const images = [image({ lastFailure: failure })];
  expect(findProblems({ ...HEALTHY, failed, labels: served, images })).toMatchObject([
    { title: 'Image debian is missing', severity: 'critical', since: NOW - 50, effect: '2 requests for it failed' },
  ]);
});

it.each<[RefusalCause | undefined, Problem['cause'], RegExp]>([
  ['launch', 'cloud', /lists its launch attempts/],
  ['limit', 'limit', /raise the limit/],
  ['configuration', 'configuration', /Correct what the reason names/],
  ['image', 'image', /disk image/],
  ['expired', 'cloud', /max-wait/],
  ['label', 'configuration', /Add the label to a pool/],
  [undefined, 'cloud', /lists its launch attempts/],
])(
  'requests that failed for the cause %s have its remedy, whatever pools have their label now',
  (refused, ...expected) => {
    const [cause, remedy] = expected;
    const requests = { count: 2, first: NOW - 50, last: NOW - 40, served: undefined, reason: 'why', cause: refused };
    const failed = new Map([['small', requests]]);
    const found = [[label({})], [label({ pools: ['cloud/main'] })]].flatMap((labels) =>
      findProblems({ ...HEALTHY, failed, labels }),
    );
    expect(found.map((problem) => problem.cause)).toEqual([cause, cause]);
    expect(found[0]?.remedy).toMatch(remedy);
    // A pool that has the label now has ended its absence.
    const isOver = refused === 'label';
    expect(found[1]).toMatchObject({ severity: isOver ? 'info' : 'warning', remedy: isOver ? null : found[0]?.remedy });
  },
);

it('suspended deletions are critical, and name the reason, the effect and the remedy', () => {
  const suspension = { provider: null, reason: 'an older state', since: NOW - 60, by: 'nl01-7', nextNode: null };
  const suspensions = [suspension, { ...suspension, provider: 'cloud' }];
  expect(findProblems({ ...HEALTHY, suspensions })).toMatchObject([
    { severity: 'critical', title: 'Deletions of resources without a record are suspended', since: NOW - 60 },
    { subject: { kind: 'provider', id: 'cloud' }, details: ['an older state', 'nl01-7 has suspended them.'] },
  ]);
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

it('failed requests are over once a later one is served, and leave the page some minutes later', () => {
  const failed = (served: number | undefined): string[] =>
    titles({
      failed: new Map([
        ['small', { count: 2, first: NOW - 900, last: NOW - 800, served, reason: 'refused', cause: 'launch' }],
      ]),
    });
  expect(failed(undefined)).toEqual(['warning: 2 requests for the label small failed']);
  expect(failed(NOW - 299)).toEqual(['info: 2 requests for the label small failed; it is over']);
  expect(failed(NOW - 300)).toEqual([]);
});

it('every kind of problem has a first step in the runbooks', () => {
  const docs = join(__dirname, '..', '..', '..', 'docs');
  const runbooks = readFileSync(join(docs, 'runbooks.md'), 'utf8');
  const section = /^## NodepoolProblem\n(.*?)^## /ms.exec(runbooks)?.[1] ?? '';
  const documented = [...section.matchAll(/`([a-z-]+)`/g)].map(([, kind]) => kind);
  const model = readFileSync(join(__dirname, '..', 'src', 'client', 'model-parts.ts'), 'utf8');
  const kinds = /export type ProblemKind =([^;]*);/.exec(model)?.[1]?.match(/[a-z-]+/g);
  expect(kinds?.length).toBeGreaterThan(20);
  expect(documented.sort()).toEqual(kinds?.sort());
});
