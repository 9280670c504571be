/** `pnpm bench:github`: jobs of GitHub Actions against plain requests for nodes, in turn. */

import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { systemClock } from '@nodepool/core';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { dataFolder } from '../data-folder.js';
import { BenchmarkEnvironment, LABEL } from '../environment.js';
import { JobSite } from './jobs.js';

const HELP = `Usage: pnpm bench:github [options]

Measures a launcher with a cloud without delays, alternately: the time until N requests at once are fulfilled and
locked, and the time until N jobs at once run. Then the time of single jobs on nodes that are ready. Runners start at
once: neither ssh nor the start of a runner is included. GitHub is simulated.

  --jobs N      jobs and requests at once (default 500)
  --rounds N    rounds (default 5)
  --single N    single jobs on ready nodes (default 50)
  --help        this text

Example:
  $ pnpm bench:github --jobs 100 --rounds 3
`;

/** Highest ratio, and longest time of a single job (ms), that the bridge aims at. */
const TARGET_RATIO = 1.3;
const TARGET_SINGLE_MS = 300;
const READY = 20;
const DEADLINE_MS = 1_200_000;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      jobs: { type: 'string', default: '500' },
      rounds: { type: 'string', default: '5' },
      single: { type: 'string', default: '50' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const [jobs, rounds, single] = [integer('jobs', values.jobs), integer('rounds', values.rounds), integer('single', values.single)]; // prettier-ignore
  await many(jobs, rounds);
  await ready(single);
}

async function many(count: number, rounds: number): Promise<void> {
  const environment = await makeEnvironment(0);
  const ratios: number[] = [];
  try {
    const site = await environment.measure('starts the bridge', (signal) => JobSite.start(environment.servers, signal));
    for (let round = 1; round <= rounds; round += 1) {
      const plainMs = await environment.measure('fulfils requests', () => plain(environment, count));
      await environment.measure('deletes the nodes', (signal) => environment.clean(signal));
      const jobsMs = await environment.measure('serves jobs', (signal) => site.run(count, signal));
      await environment.measure('deletes the nodes', (signal) => environment.clean(signal));
      ratios.push(jobsMs / plainMs);
      print(
        `round ${round}: ${count} requests ${seconds(plainMs)}, ${count} jobs ${seconds(jobsMs)}, ` +
          `ratio ${(jobsMs / plainMs).toFixed(2)}, load ${load()}`,
      );
    }
    await site.stop();
  } finally {
    await environment.clear();
  }
  print(`ratio, median of ${rounds}: ${quantile(ratios, 0.5).toFixed(2)} (aim: ${TARGET_RATIO})`);
}

async function plain(environment: BenchmarkEnvironment, count: number): Promise<number> {
  const began = systemClock.monotonic();
  const requests = await Promise.all(Array.from({ length: count }, () => environment.submit()));
  const leases = await Promise.all(
    requests.map(async (request) => {
      await request.fulfilled();
      return await request.take();
    }),
  );
  const tookMs = systemClock.monotonic() - began;
  await Promise.all(leases.map((lease) => lease.return()));
  return tookMs;
}

async function ready(count: number): Promise<void> {
  const environment = await makeEnvironment(READY);
  const times: number[] = [];
  try {
    const site = await environment.measure('starts the bridge', (signal) => JobSite.start(environment.servers, signal));
    for (let index = 0; index < count; index += 1) {
      times.push(await environment.measure('serves a job', (signal) => site.run(1, signal)));
    }
    await site.stop();
  } finally {
    await environment.clear();
  }
  const of = (share: number): string => `${quantile(times, share).toFixed(0)} ms`;
  print(
    `queued to running on a ready node, ${count} single jobs: p50 ${of(0.5)}, p95 ${of(0.95)}, longest ${of(1)} ` +
      `(aim: ${TARGET_SINGLE_MS} ms), load ${load()}`,
  );
}

function makeEnvironment(minReady: number): Promise<BenchmarkEnvironment> {
  return BenchmarkEnvironment.make({
    ...{ dataFolder: dataFolder('memory'), optimizedZooKeeper: true, probe: 'none', deadlineMs: DEADLINE_MS },
    site: { labels: [LABEL], minReady: { [LABEL]: minReady } },
  });
}

function quantile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? NaN;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

function load(): string {
  return (loadavg()[0] ?? NaN).toFixed(1);
}

function integer(option: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1) return value;
  throw new UsageError(`--${option} must be an integer of at least 1, not ${JSON.stringify(text)}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

runCommandLine(HELP, main);
