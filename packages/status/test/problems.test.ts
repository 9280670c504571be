/** Tests of the problems that the status page names, with their cause, effect and remedy. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { RefusalCause } from '../src/facts/timeline-recorder.js';
import type { Problem } from '../src/client/model.js';
import { findProblems } from '../src/documents/problems/index.js';
import type { FailedRequests } from '../src/documents/problems/sources.js';
import { failure, HEALTHY, image, label, NOW, provider, titles, upload } from './problem-fixtures.js';

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
  const missing = (change: { readonly since?: number }): string[] =>
    titles({ labels: [label({ waiting: 6, reason: { ...reason, ...change } })] });
  expect(missing({ since: NOW - 10 })).toEqual(['critical: No pool has the label small']);
  // Pools decline a request one after the other, and it fails soon.
  expect(missing({})).toEqual([]);
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
    hasPool: false,
    lastPool: undefined,
    labels: ['small'],
    reason: 'cloud/main: no answer',
    cause: 'launch',
  } as const;
  const failed = [requests];
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
  // Another launcher has written a reason, without its cause.
  [undefined, 'configuration', /shows the reason of each pool/],
])(
  'requests that failed for the cause %s have its remedy, whatever pools have their label now',
  (refused, ...expected) => {
    const [cause, remedy] = expected;
    const requests = { count: 2, first: NOW - 50, last: NOW - 40, served: undefined, reason: 'why', cause: refused };
    const found = [false, true].flatMap((hasPool) =>
      findProblems({
        ...HEALTHY,
        failed: [{ ...requests, labels: ['small'], hasPool, lastPool: undefined }],
        labels: [label({})],
      }),
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

it('failed requests are not over while no pool has their labels, whose last launcher is named', () => {
  const requests = {
    ...{ labels: ['a', 'b'], count: 1, first: NOW - 900, last: NOW - 800, served: NOW - 5, reason: 'no pool' },
    ...{ cause: 'label' as const, hasPool: false },
    lastPool: { pool: 'cloud/main', launcher: 'nl02', isRunning: false },
  };
  const remedyOf = (lastPool: FailedRequests['lastPool']): unknown =>
    findProblems({ ...HEALTHY, failed: [{ ...requests, lastPool }] }).map(({ remedy }) => remedy);
  expect(findProblems({ ...HEALTHY, failed: [requests] })).toMatchObject([
    {
      ...{ severity: 'warning', title: '1 request for the labels a, b failed' },
      details: ['no pool', 'Pool cloud/main of launcher nl02 had the labels before.'],
    },
  ]);
  expect(remedyOf(requests.lastPool)).toEqual(['Start the launcher on nl02, or add the label to another pool.']);
  // Its configuration has changed.
  const without = ['Add the label to a pool, or correct the jobs that ask for it.'];
  expect(remedyOf({ ...requests.lastPool, isRunning: true })).toEqual(without);
  expect(remedyOf(undefined)).toEqual(without);
});

it('failed requests are over once a later one is served, and leave the page some minutes later', () => {
  const failed = (served: number | undefined): string[] =>
    titles({
      failed: [
        {
          ...{ labels: ['small'], count: 2, first: NOW - 900, last: NOW - 800, served, reason: 'refused' },
          ...{ cause: 'launch', hasPool: true, lastPool: undefined },
        },
      ],
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
