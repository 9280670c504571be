/** The page of GitHub Actions in Chromium: scale sets, why jobs wait, and times by repository. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { KnownJob, ScaleSetRecord } from '@nodepool/store/github';
import { WAIT_LIMIT_MS, useBrowser } from './browser.js';

const setting = useBrowser();

const JOB: KnownJob = {
  ...{ id: 'job-1', repository: 'acme/app', workflow: 'ci.yml', run: 7001, name: 'build', state: 'assigned' },
  ...{ since: 0, queued: null, runner: 'linux-0123456789abcdef', result: null },
};

/** Times are relative to the present. */
function record(now: number, more: Partial<ScaleSetRecord> = {}): JsonObject {
  const base: ScaleSetRecord = {
    ...{ installation: 'acme', scaleSet: 'linux', url: 'https://github.com/acme', nodeLabel: 'debian', bridge: 'b-1' },
    ...{ id: 1, session: 's', capacity: 3, capacityReason: 'max-runners is 3', jobsAvailable: 1, jobsAssigned: 2 },
    ...{ jobsRunning: 1, runners: { requested: 1, busy: 1 }, problem: null, written: now },
    jobs: [
      { ...JOB, since: now - 100, queued: now - 120 },
      { ...JOB, id: 'job-2', name: 'lint', state: 'running', since: now - 30, runner: 'linux-fedcba9876543210' },
      { ...JOB, id: 'job-3', name: 'docs', state: 'completed', since: now - 5, result: 'failed' },
    ],
    phases: [
      { repository: 'acme/app', phase: 'queued', count: 4, p50: 0.2, p95: 3 },
      { repository: 'acme/app', phase: 'online', count: 4, p50: 2.5, p95: 61 },
    ],
    ...more,
  };
  return JSON.parse(JSON.stringify(base)) as JsonObject;
}

const OF_RUNNER = { installation: 'acme', scaleSet: 'linux', agent: null, started: false };
const CONTENDER = 'elections/github~acme~linux/0123__lock__0000000001';

describe('the page of GitHub Actions', () => {
  it(
    'shows scale sets, the reason of waiting jobs, and the times of repositories',
    async () => {
      const { server, viewer } = setting();
      const { now } = server;
      await server.put('github/acme~linux', record(now));
      await server.put(CONTENDER, 'b-1');
      await server.put('elections/github~acme~linux/4567__lock__0000000002', 'b-2');
      const job = { id: 'job-1', repository: 'acme/app', workflow: 'ci.yml', run: 7001, name: 'build' };
      const data = { github: { ...OF_RUNNER, runner: JOB.runner, job } };
      const request = { state: 'requested', node_types: ['debian'], nodes: [], declined_by: [], requestor_data: data };
      await server.put('requests/200-0000000001', { ...request, requestor: 'nodepool-github', state_time: now });
      await viewer.open('#/github');
      expect(await viewer.text('#navigation')).toContain('GitHub Actions');
      const set = await viewer.text('tr:has-text("acme/linux"):has-text("debian")');
      expect(set).toMatch(/connected[\s\S]*1 run, 1 wait[\s\S]*1 offered[\s\S]*1 requested, 1 busy/);
      expect(set).toMatch(/3 jobs[\s\S]*max-runners is 3[\s\S]*b-1[\s\S]*1 bridge on standby/);
      const waiting = await viewer.text('[data-key="Waiting jobs"] tbody tr');
      expect(waiting).toMatch(/build of acme\/app[\s\S]*2 min[\s\S]*assigned[\s\S]*200-0000000001/);
      expect(waiting).toContain('No registered pool has debian');
      expect(await viewer.text('[data-key="Times by repository"] tbody tr')).toMatch(
        /acme\/app[\s\S]*0\.20 s[\s\S]*2\.5 s[\s\S]*p95 1 min 1 s/,
      );
      expect(await viewer.text('[data-key="Running jobs"] tbody tr')).toContain('lint');
      expect(await viewer.text('[data-key="Ended jobs"] tbody tr')).toContain('failed');
      const link = viewer.page.locator('[data-key="Waiting jobs"] a').first();
      expect(await link.getAttribute('href')).toBe('https://github.com/acme/app/actions/runs/7001');
      await viewer.visit('#/requests/200-0000000001');
      expect(await viewer.text('dl.facts')).toContain('build of acme/app (all jobs)');
      expect(viewer.consoleMessages).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );

  it(
    'says that no bridge runs, and is not in the navigation of sites without one',
    async () => {
      const { server, viewer } = setting();
      await viewer.open();
      expect(await viewer.text('#navigation')).not.toContain('GitHub');
      await viewer.visit('#/github');
      expect(await viewer.text('main')).toContain('No bridge has served a scale set yet.');
      await server.put('github/acme~linux', record(server.now));
      await server.clock.advance(2000);
      await viewer.page.locator('tr:has-text("no bridge serves it: nodepool-github does not run")').waitFor();
    },
    WAIT_LIMIT_MS,
  );

  it(
    'shows records of any content as text, and links to web pages only',
    async () => {
      const { server, viewer } = setting();
      const name = '<img src=x onerror=alert(1)>';
      const jobs = [{ ...JOB, name, repository: 'a/../../b', runner: null }];
      await server.put('github/acme~linux', record(server.now, { url: 'javascript:alert(1)', problem: name, jobs }));
      await server.put('github/acme~torn', '{"installation": "acme", ');
      await viewer.open('#/github');
      expect(await viewer.text('[data-key="Waiting jobs"] tbody tr')).toContain(name);
      const links = await viewer.page.locator('main a').evaluateAll((all) => all.map((a) => a.getAttribute('href')));
      expect(links.filter((href) => href?.startsWith('#/') !== true)).toEqual([]);
      expect(viewer.consoleMessages).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );
});
