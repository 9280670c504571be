/** Plans of runners after failures and ended jobs, and the times of phases. */

import { describe, expect, it } from '@jest/globals';
import { silentMetrics, type Metrics } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import type { GithubJob } from '@nodepool/store/github';
import { Runner, type EndReason } from '../src/runners/runner.js';
import { Phases, RepositoryLabels } from '../src/scale-set/phases.js';
import { Planner } from '../src/scale-set/planner.js';
import { SET } from './support/world.js';

const NOTHING = { available: 0, assigned: 0, running: 0 };

function planner(statistics: Partial<typeof NOTHING>) {
  const clock = new VirtualClock();
  const planner = new Planner({ clock, random: seededRandom(1) });
  planner.statistics = { ...NOTHING, ...statistics } as NonNullable<Planner['statistics']>;
  return { clock, planner };
}

function runner(name: string, reason?: EndReason, more: Partial<Runner> = {}): Runner {
  const data = { installation: 'acme', scaleSet: 'linux', runner: name, job: null, agent: 1, started: true };
  const made = Object.assign(new Runner(data, 0), more);
  if (reason !== undefined) made.end(reason, 'why');
  return made;
}

describe('a runner that has ended', () => {
  it('with its job is not replaced while GitHub may still count the job', async () => {
    const { clock, planner: one } = planner({ assigned: 1, running: 1 });
    one.ended(runner('a', 'job-done'));
    expect(one.plan(SET, [])).toMatchObject({ create: 0, againMs: 5000 });
    await clock.advance(5000);
    expect(one.plan(SET, []).create).toBe(1);
  });

  it('in its job is not replaced until GitHub does not list it any more', async () => {
    const { clock, planner: one } = planner({ assigned: 1, running: 1 });
    one.ended(runner('a', 'killed', { isBusy: true }));
    await clock.advance(600_000);
    expect(one.plan(SET, []).create).toBe(0);
    expect(one.settling.compare(new Set(['a']))).toBe(false);
    expect(one.settling.compare(new Set())).toBe(true);
    expect(one.plan(SET, []).create).toBe(1);
  });

  it('before its job is replaced at once', () => {
    const { planner: one } = planner({ assigned: 1 });
    one.ended(runner('a', 'ended-without-job'));
    expect(one.plan(SET, []).create).toBe(1);
  });
});

it('after failed requests the next one waits longer and longer, until a node is there', async () => {
  const { clock, planner: one } = planner({ assigned: 1 });
  const waits: number[] = [];
  for (let count = 0; count < 4; count++) {
    one.ended(runner('a', 'request-failed'));
    const { create, againMs = 0 } = one.plan(SET, []);
    expect([create, one.isPaused, one.requestProblem]).toEqual([0, true, 'why']);
    waits.push(againMs);
    await clock.advance(againMs + 1);
    expect(one.plan(SET, []).create).toBe(1);
  }
  expect([...waits].sort((a, b) => a - b)).toEqual(waits);
  // Only its presence matters.
  const lease = {} as unknown as NonNullable<Runner['lease']>;
  one.ended(runner('b', 'not-needed', { lease }));
  expect(one.requestProblem).toBeUndefined();
});

it('a runner that gets no job is replaced only if jobs wait', async () => {
  const { clock, planner: one } = planner({ assigned: 2, running: 1 });
  const idle = runner('a', undefined, { isOnline: true, onlineAt: 0 });
  await clock.advance(179_000);
  expect(one.withoutJob([idle])).toEqual([]);
  await clock.advance(1000);
  expect(one.withoutJob([idle])).toEqual(['a']);
  one.statistics = { ...NOTHING, assigned: 1, running: 1 } as NonNullable<Planner['statistics']>;
  expect(one.withoutJob([idle])).toEqual([]);
});

describe('phases', () => {
  const job = (repository: string): GithubJob => ({ id: '1', repository, workflow: '', run: 1, name: '' });

  it('are summed up per repository, from the last two hundred times', () => {
    const seen: string[] = [];
    const metrics: Metrics = {
      ...silentMetrics,
      observe: ({ name }, labels) => void seen.push(`${name} ${JSON.stringify(labels)}`),
    };
    const repositories = new RepositoryLabels();
    const phases = new Phases({ metrics, repositories, installation: 'acme', scaleSet: 'linux' });
    for (let ms = 1; ms <= 300; ms++) phases.observe('node', job('acme/app'), ms * 1000);
    phases.observe('queued', null, 500);
    expect(phases.summary()).toEqual([
      { repository: 'acme/app', phase: 'node', count: 200, p50: 200, p95: 290 },
      { repository: 'unknown', phase: 'queued', count: 1, p50: 0.5, p95: 0.5 },
    ]);
    expect(seen[0]).toContain('nodepool_github_runner_phase_seconds');
    expect(seen.at(-1)).toContain('nodepool_github_job_phase_seconds');
  });

  it('of more than a hundred repositories share a value of the metrics', () => {
    const labels = new RepositoryLabels();
    const values = Array.from({ length: 150 }, (_, index) => labels.of(job(`acme/r${index}`)));
    expect(new Set(values).size).toBe(101);
    expect([labels.of(job('acme/r0')), labels.of(job('acme/r149')), labels.of(null)]).toEqual([
      'acme/r0',
      'other',
      'unknown',
    ]);
  });
});
