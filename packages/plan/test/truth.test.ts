/** Replays are compared with what truly happened, and with queueing theory. */

import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { readDay } from '../src/index.js';
import { replay } from '../src/replay.js';
import type { RunMeasures } from '../src/result/measures.js';
import { quantile } from '../src/result/summary.js';
import { recordDay, type RecordedDay } from './support/recorded-day.js';
import { siteConfig, type SitePool } from './support/site.js';

describe('a replay of a recorded day', () => {
  const PLENTY = { alpha: { labels: ['small', 'large'], maxServers: 14 }, beta: { labels: ['small'], maxServers: 6 } };
  const SCARCE = { alpha: { labels: ['small', 'large'], maxServers: 10 }, beta: { labels: ['small'], maxServers: 5 } };
  const RUNS = [1, 2, 3];
  /** Relative error of a quantile of the waits, for the median of the runs. */
  const TOLERANCE = 0.2;

  /** A cloud in which one of 20 instances fails. */
  function record(providers: Readonly<Record<string, SitePool>>): Promise<RecordedDay> {
    return recordDay({
      ...{ providers, seed: 7, requests: 400, intervalMs: 20_000, heldMs: 220_000 },
      cloud: { bootTimeMs: [20_000, 60_000], deleteTimeMs: [2000, 10_000], apiLatencyMs: [50, 500] },
      failedInstances: 0.05,
      labelOf: (chance) => (chance < 0.6 ? 'small' : 'large'),
    });
  }

  it('has the waits that truly happened, with the same limits and with lower ones', async () => {
    const recorded = await record(PLENTY);
    const day = await readDay([{ name: 'journal', lines: recorded.lines }]);
    // The same requests with lower limits, which the replay does not see.
    const truths = [
      [PLENTY, recorded],
      [SCARCE, await record(SCARCE)],
    ] as const;
    for (const [providers, { waits }] of truths) {
      const config = await siteConfig({ providers });
      const runs: RunMeasures[] = [];
      for (const seed of RUNS) runs.push(await replay({ day, config, seed }));
      for (const [label, times] of waits) {
        for (const part of [0.5, 0.9]) {
          const replayed = runs.map(({ labels }) => quantile(labels[label]?.waitsMs ?? [], part) ?? Infinity);
          const error = Math.abs(medianOf(replayed) / quantileOf(times, part) - 1);
          expect({ label, part, isClose: error < TOLERANCE, error }).toMatchObject({ isClose: true });
        }
      }
    }
    const [before, after] = truths.map(([, { waits }]) => quantileOf(waits.get('large') ?? [], 0.9));
    // The lower limits matter.
    expect(after).toBeGreaterThan(2 * (before ?? Infinity));
  });
});

describe('a replay of exponential arrivals and uses', () => {
  const ARRIVALS_PER_S = 1 / 30;
  const MEAN_USE_S = 300;
  const START_S = 1_790_000_000;

  interface Job {
    readonly created: number;
    readonly held: number;
  }

  function exponentialJobs(seed: number, count: number): readonly Job[] {
    const random = seededRandom(seed);
    const exponential = (mean: number): number => -Math.log(1 - random.next()) * mean;
    let created = START_S;
    return Array.from({ length: count }, () => {
      created += exponential(1 / ARRIVALS_PER_S);
      return { created, held: exponential(MEAN_USE_S) };
    });
  }

  /** Returns the waits of a queue with this number of servers, seconds. */
  function queueWaits(jobs: readonly Job[], servers: number): readonly number[] {
    const freeAt = Array.from({ length: servers }, () => 0);
    return jobs.map(({ created, held }) => {
      const first = freeAt.indexOf(Math.min(...freeAt));
      const start = Math.max(created, freeAt[first] ?? 0);
      freeAt[first] = start + held;
      return start - created;
    });
  }

  it.each([13, 12, 11])('has the waits of a queue with %d servers, whose mean Erlang C predicts', async (servers) => {
    const jobs = exponentialJobs(1, 800);
    const lines = jobs.map((job) => JSON.stringify({ ...job, label: 'small' }));
    // Launches and deletions that take no time, as in the theory.
    const attempt = { at: START_S, pool: 'alpha/main', label: 'small', result: 'ready' };
    const node = { kind: 'node', id: '1', labels: ['small'], provider: 'alpha', pool: 'main', attempts: [attempt] };
    const day = await readDay([{ name: 'requests', lines: [...lines, JSON.stringify({ ...node, deleting: 0 })] }]);
    const config = await siteConfig({ providers: { alpha: { labels: ['small'], maxServers: servers } } });
    const { labels } = await replay({ day, config, seed: 1 });
    const replayed = labels['small']?.waitsMs ?? [];
    expect(replayed).toHaveLength(jobs.length);
    const exact = queueWaits(jobs, servers).toSorted((a, b) => a - b);
    const errors = exact.map((wait, index) => Math.abs((replayed[index] ?? Infinity) - wait * 1000));
    // Times are rounded to milliseconds.
    expect(Math.max(...errors)).toBeLessThan(20);

    const many = queueWaits(exponentialJobs(2, 400_000), servers);
    const mean = many.reduce((sum, wait) => sum + wait, 0) / many.length;
    const predicted = meanWait(servers, ARRIVALS_PER_S, 1 / MEAN_USE_S);
    expect(Math.abs(mean / predicted - 1)).toBeLessThan(0.1);
  });
});

function quantileOf(values: readonly number[], part: number): number {
  return (
    quantile(
      [...values].sort((a, b) => a - b),
      part,
    ) ?? NaN
  );
}

function medianOf(values: readonly number[]): number {
  return quantileOf(values, 0.5);
}

/** Returns the mean wait of M/M/c, seconds. */
function meanWait(servers: number, arrivalRate: number, serviceRate: number): number {
  const load = arrivalRate / serviceRate;
  // The recursion of Erlang B, from which Erlang C follows.
  let blocked = 1;
  for (let count = 1; count <= servers; count += 1) blocked = (load * blocked) / (count + load * blocked);
  const waiting = (servers * blocked) / (servers - load * (1 - blocked));
  return waiting / (servers * serviceRate - arrivalRate);
}
