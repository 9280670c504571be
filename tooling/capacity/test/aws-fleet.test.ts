/**
 * A fleet of AWS with three zones: one has no capacity at all, in another one AWS takes spot instances away all the
 * time. With `NODEPOOL_SCENARIO=long`, a thousand nodes.
 */

import { afterEach, expect, it } from '@jest/globals';
import { sleep, type Metrics, type Timer } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import type { Interruption } from '@nodepool/requestor';
import { REGION, type SimulatedAws } from '@nodepool/simulated-aws';
import { openAws } from '../src/matrix/aws.js';
import { LABEL } from '../src/matrix/target.js';
import { Site } from './support/site.js';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
const JOBS = LONG ? 1000 : 60;
const TIMEOUT_MS = LONG ? 3_600_000 : 600_000;
/** Time during which the jobs arrive (ms). */
const ARRIVAL_MS = LONG ? 600_000 : 120_000;
const JOB_MS = LONG ? 300_000 : 120_000;
/** Interval at which AWS looks for spot instances to take away (ms), and the part that it takes. */
const TAKE_AWAY = { intervalMs: 15_000, part: 0.3 } as const;
const FULL = `${REGION}a`;
const TAKEN = `${REGION}b`;
const CALM = `${REGION}c`;

let site: Site;
let timer: Timer | undefined;

afterEach(async () => {
  timer?.cancel();
  await site.stop();
});

/** A job runs again on another node if its node is taken away, as CI systems do. */
interface JobResult {
  readonly attempts: number;
  readonly interruptions: readonly (Interruption & { readonly toldAt: number; readonly zone: string })[];
}

async function runJob(): Promise<JobResult> {
  const { clock } = site.time;
  const interruptions: JobResult['interruptions'][number][] = [];
  for (let attempts = 1; ; attempts += 1) {
    const lease = await site.requestor.acquire({ labels: [LABEL] });
    const lost = new AbortController();
    const zone = lease.nodes[0]?.availabilityZone ?? '';
    lease.onInterruption((each) => {
      interruptions.push({ ...each, toldAt: clock.now(), zone });
      lost.abort(new Error(each.reason));
    });
    await sleep(clock, JOB_MS, lost.signal).catch(() => undefined);
    await lease.return();
    if (!lost.signal.aborted) return { attempts, interruptions };
  }
}

it(
  'completes all jobs, tells each holder of an interrupted node in time, and leaves no instance',
  async () => {
    const opened: SimulatedAws[] = [];
    let counted = 0;
    let failedAttempts = 0;
    const metrics: Metrics = {
      set: () => undefined,
      observe: () => undefined,
      onCollect: () => () => undefined,
      count: ({ name }) => {
        if (name === 'nodepool_interrupted_nodes_total') counted += 1;
        if (name === 'nodepool_launch_attempts_failed_total') failedAttempts += 1;
      },
    };
    const open = async (options: Parameters<typeof openAws>[0]): ReturnType<typeof openAws> => {
      const target = await openAws(options, [FULL, TAKEN, CALM]);
      opened.push(target.cloud);
      for (const code of ['L-1216C47A', 'L-34B43A08']) target.cloud.setQuota(code, 100_000);
      target.cloud.capacity.limit({ zone: FULL }, 0);
      return target;
    };
    const label = { 'instance-types': ['m5.large', 'm5a.large'] };
    site = await Site.start(open, { label, pool: { 'max-servers': JOBS }, metrics });
    const { clock } = site.time;
    const aws = opened[0];
    if (aws === undefined) throw new Error('the cloud was not started');

    const chance = seededRandom(7);
    const notified = new Set<string>();
    const takeAway = (): void => {
      for (const { id, zone, market, state } of aws.inspect.instances()) {
        if (zone !== TAKEN || market !== 'spot' || state !== 'running' || notified.has(id)) continue;
        if (chance.next() >= TAKE_AWAY.part) continue;
        notified.add(id);
        aws.interruptSpot(id);
      }
      timer = clock.schedule(TAKE_AWAY.intervalMs, takeAway);
    };
    timer = clock.schedule(TAKE_AWAY.intervalMs, takeAway);

    const results: JobResult[] = [];
    const failures: unknown[] = [];
    for (let job = 0; job < JOBS; job += 1) {
      clock.schedule((job * ARRIVAL_MS) / JOBS, () => {
        runJob().then(
          (result) => results.push(result),
          (error: unknown) => failures.push(error),
        );
      });
    }
    await site.time.until(() => results.length === JOBS || failures.length > 0, 4 * 3_600_000);
    timer.cancel();
    expect(failures).toEqual([]);
    expect(results).toHaveLength(JOBS);

    const told = results.flatMap(({ interruptions }) => interruptions);
    expect(told.length).toBeGreaterThan(JOBS / 50);
    expect(counted).toBeGreaterThanOrEqual(told.length);
    for (const { kind, endsAt = 0, toldAt, zone } of told) {
      expect([kind, zone]).toEqual(['reclaimed', TAKEN]);
      // The notice comes two minutes before.
      expect(endsAt - toldAt).toBeGreaterThan(90_000);
    }
    // The offers of the zone are avoided once their first nodes are taken away.
    expect(results.filter(({ attempts }) => attempts === 1).length).toBeGreaterThan(JOBS * (LONG ? 0.6 : 0.4));
    expect(Math.max(...results.map(({ attempts }) => attempts))).toBeLessThanOrEqual(5);

    await site.time.until(() => [...site.store.nodes.all()].length === 0, 600_000);
    const left = aws.inspect.instances().filter(({ state }) => state !== 'terminated');
    expect([left, [...site.store.nodes.all()]]).toEqual([[], []]);
    // No launch attempt has two instances. Lists show terminated ones for an hour.
    const leases = results.reduce((sum, { attempts }) => sum + attempts, 0);
    expect(aws.inspect.instances().length).toBeLessThanOrEqual(leases + failedAttempts);
  },
  TIMEOUT_MS,
);
