/**
 * Slurm's own daemons with `nodepool-slurm`: jobs on cloud nodes that come and go, while the gateway, the launcher and
 * the programs that Slurm calls are killed, and clouds reclaim instances. `pnpm scenario:slurm` runs 200 jobs.
 */

import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { slurmMissing, SlurmSite, type JobRun } from './slurm-site.js';

const LONG = process.env['NODEPOOL_SCENARIO'] === 'slurm';
const SIZE = LONG ? { nodes: 8, waves: 10, jobs: 20, reclaims: 8 } : { nodes: 2, waves: 1, jobs: 4, reclaims: 0 };
const DEADLINE_MS = LONG ? 2_400_000 : 600_000;
const JOB_S = 1.5;
/** Time (ms) between two comparisons. */
const RECONCILE_MS = 2000;
/** Time (ms) between two waves of jobs; Slurm starts the first job of a node up to 30 s after the node. */
const WAVE_MS = 45_000;
/** Mean times (ms) between disturbances. */
const PAUSES_MS = {
  gateway: 6000,
  launcher: 45_000,
  programs: 3000,
  controller: 120_000,
  reclaim: 20_000,
  drain: 20_000,
};
const LOOK_MS = 50;

const missing = slurmMissing();
const withSlurm = missing === undefined ? describe : describe.skip;

let slurm: SlurmSite | undefined;
afterEach(async () => {
  await slurm?.stop();
  slurm = undefined;
}, DEADLINE_MS);

withSlurm(missing === undefined ? 'Slurm' : `Slurm (skipped: ${missing})`, () => {
  it(
    `runs ${SIZE.waves * SIZE.jobs} jobs on ${SIZE.nodes} leased nodes under faults`,
    async () => {
      const site = await SlurmSite.start(SIZE.nodes);
      slurm = site;
      const random = seededRandom(1);
      const total = SIZE.waves * SIZE.jobs;
      const done = (): number => site.runs().filter(({ event }) => event === 'done').length;
      const served = new AbortController();
      const counts = new Map<string, number>();
      const count = (what: string, times = 1): void => void counts.set(what, (counts.get(what) ?? 0) + times);
      const repeat = async (pauseMs: number, work: () => Promise<void>, times = Infinity): Promise<void> => {
        for (let time = 0; !served.signal.aborted && time < times; time++) {
          await sleep(systemClock, pauseMs * (0.5 + random.next()), served.signal).catch(() => undefined);
          await work();
        }
      };
      /** Submits jobs in waves; nodes go and come between them. */
      const submitWaves = async (): Promise<void> => {
        for (let wave = 1; wave <= SIZE.waves; wave++) {
          await site.submit(SIZE.jobs, JOB_S);
          await sleep(systemClock, WAVE_MS * (0.5 + random.next()));
        }
        await site.until('all jobs are done', DEADLINE_MS, () => Promise.resolve(done() >= total));
      };
      /** Reclaims an instance at the beginning of a run, so that the run cannot end before its machine does. */
      const reclaim = async (): Promise<void> => {
        const before = site.runs().length;
        let begun: JobRun | undefined;
        while (begun === undefined && !served.signal.aborted) {
          const later = site.runs().slice(before);
          begun = later.find(({ event }) => event === 'begun');
          await sleep(systemClock, LOOK_MS);
        }
        if (begun !== undefined && (await site.reclaim(begun.node))) count('reclaimed instances');
      };
      const waves = submitWaves().finally(() => served.abort(new Error('all jobs are done')));
      await Promise.all([
        waves,
        repeat(RECONCILE_MS, async () => {
          // A comparison that is killed or fails is repeated.
          await site.reconcile();
        }),
        repeat(RECONCILE_MS, () => site.hurry()),
        repeat(PAUSES_MS.gateway, async () => {
          await site.gateway.restart();
          count('killed gateways');
        }),
        repeat(PAUSES_MS.launcher, async () => {
          await site.killLauncher();
          count('killed launchers');
        }),
        repeat(PAUSES_MS.programs, () => {
          const kinds = random.next() < 0.1 ? ['reconcile'] : [];
          count('killed programs', site.killPrograms('resume', 'suspend', 'recover', ...kinds));
          return Promise.resolve();
        }),
        repeat(PAUSES_MS.controller, async () => {
          await site.restartController();
          count('restarted controllers');
        }),
        repeat(PAUSES_MS.reclaim, reclaim, SIZE.reclaims),
        repeat(PAUSES_MS.drain, async () => {
          // Its job ends before Slurm powers it down.
          const node = `cloud${1 + Math.floor(random.next() * SIZE.nodes)}`;
          await site.slurm('scontrol', 'update', `nodename=${node}`, 'state=power_down_asap', 'reason=test');
          count('drained nodes');
        }),
      ]);

      const completed = site.runs().filter(({ event }) => event === 'done');
      expect(new Set(completed.map(({ job }) => job)).size).toBe(total);
      expect(completed.length).toBe(total);
      // The run that was completed is the last one.
      for (const { job, restarts } of completed) {
        const begun = site.runs().filter((run) => run.event === 'begun' && run.job === job);
        expect(Math.max(...begun.map((run) => run.restarts))).toBe(restarts);
      }
      await site.until('all jobs are over', DEADLINE_MS, async () => (await site.slurm('squeue', '--noheader')) === '');
      const states = await site.slurm('scontrol', '--oneliner', 'show', 'job');
      const ends = [...states.matchAll(/JobState=(\S+)/g)].map(([, state]) => state);
      expect(ends.filter((state) => state !== 'COMPLETED')).toEqual([]);

      await site.until('all nodes are off', DEADLINE_MS, async () => {
        await site.reconcile();
        const nodes = await site.slurm('scontrol', '--oneliner', 'show', 'node');
        return [...nodes.matchAll(/ State=(\S+)/g)].every(([, state = '']) => state.includes('POWERED_DOWN'));
      });
      await site.until('no lease is left', DEADLINE_MS, async () => {
        for await (const { state } of site.gateway.client.list()) if (state !== 'ended') return false;
        return true;
      });
      await site.site.clean(site.launcher);
      await site.site.nothingLeft(site.launcher);
      await site.until('no instance is left', DEADLINE_MS, async () => (await site.instances()).length === 0);
      await site.until('no slurmd is left', DEADLINE_MS, () => Promise.resolve(site.runningMachines().length === 0));
      const leases: string[] = [];
      for await (const { id } of site.gateway.client.list()) leases.push(id);
      const summary = { jobs: total, leases: leases.length, slurmds: site.machines, ...Object.fromEntries(counts) };
      process.stdout.write(`${JSON.stringify(summary)}\n`);
      expect(readFileSync(site.log, 'utf8')).not.toMatch(/TypeError|ReferenceError/);
    },
    DEADLINE_MS,
  );
});
