/**
 * GitHub's own client, github.com/actions/scaleset, uses the simulated GitHub for all of its operations. Needs Go and
 * the client's sources: see the README.
 */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSimulatedGithub, writeRunner, type SimulatedGithub, type SimulatedGithubOptions } from '../src/index.js';
import { buildGoClient, missingForGo } from './support/go.js';

const JOBS = 60;
const MAX_RUNNERS = 4;
const missing = missingForGo();

if (missing !== undefined) {
  describe('GitHub client in Go', () => {
    it.skip(`is not tested: ${missing}`, () => undefined);
  });
}

(missing === undefined ? describe : describe.skip)('GitHub client in Go', () => {
  let folder: string;
  let program: string;
  let github: SimulatedGithub | undefined;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'github-client-'));
    program = await buildGoClient(folder);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** Runs the program on a new GitHub, with jobs that arrive once its listener is ready, and returns its facts. */
  async function factsWith(
    options: SimulatedGithubOptions,
    prepare: (github: SimulatedGithub) => void = () => undefined,
  ): Promise<Readonly<Record<string, unknown>>> {
    const cloud = await startSimulatedGithub(options);
    github = cloud;
    prepare(cloud);
    const setup = {
      ...{ url: cloud.url, clientId: cloud.clientId, installationId: cloud.installations['acme'] },
      ...{ appKeyFile: cloud.appKeyFile, token: cloud.personalToken(), jobs: JOBS, maxRunners: MAX_RUNNERS },
      runner: await writeRunner(join(folder, 'runner')),
    };
    try {
      return await new Promise((resolve, reject) => {
        const child: ChildProcess = execFile(program, [JSON.stringify(setup)], (error, stdout, stderr) => {
          if (error !== null) reject(new Error(`${error.message}\n${stderr}`));
          else resolve(JSON.parse(stdout.replace('ready\n', '')) as Record<string, unknown>);
        });
        child.stdout?.once('data', () => {
          for (let count = 0; count < JOBS; count += 1) {
            cloud.queueJob({ repository: count % 2 === 0 ? 'acme/app' : 'acme/web', labels: ['linux', 'ARM64'] });
          }
        });
      });
    } finally {
      await cloud.close();
    }
  }

  const expected = {
    group: [1, 'default', true],
    set: {
      before: true,
      id: true,
      labels: ['linux', 'x64'].map((name) => ({ type: 'System', name })),
      disableUpdate: true,
      again: true,
      changed: ['linux', 'arm64'].map((name) => ({ type: 'System', name })),
      name: 'linux',
      isDated: true,
    },
    runner: { found: true, set: true, exists: 'runner exists', gone: 'runner not found', byName: true },
    second: 'session conflict',
    jobs: {
      started: [
        ...Array.from({ length: JOBS / 2 }, () => 'acme/app build'),
        ...Array.from({ length: JOBS / 2 }, () => 'acme/web build'),
      ],
      completed: Array.from({ length: JOBS }, () => 'succeeded'),
      runners: JOBS,
      end: true,
    },
    deleted: true,
    'acme/app': '',
    'enterprises/umbrella': '',
  };

  function expectEachServedOnce(): void {
    const jobs = github?.inspect.jobs() ?? [];
    expect(jobs).toHaveLength(JOBS);
    expect(jobs.filter(({ startedBy, result }) => startedBy.length !== 1 || result !== 'succeeded')).toEqual([]);
    expect(github?.inspect.runners()).toEqual([]);
    expect(github?.inspect.scaleSets()).toEqual([]);
  }

  it('serves jobs that are assigned to its scale set', async () => {
    expect(await factsWith({})).toEqual(expected);
    expectEachServedOnce();
  });

  it('serves jobs that it acquires, with byte order marks', async () => {
    expect(await factsWith({ settings: { assignment: 'acquire', byteOrderMark: true } })).toEqual(expected);
    expectEachServedOnce();
  });

  it('replaces tokens that expire, and repeats calls that fail for a while', async () => {
    const settings = { queueTokenMs: 1000, longPollMs: 500 };
    const facts = await factsWith({ settings }, ({ faults }) => {
      faults.add({ on: 'messages.get', after: 3, times: 2, fault: { kind: 'status', status: 503 } });
      faults.add({
        on: 'runnerscalesets.generateJitConfig',
        after: 5,
        fault: { kind: 'status', status: 429, retryAfter: 1 },
      });
      faults.add({ on: 'runners.register', fault: { kind: 'status', status: 403 } });
    });
    expect(facts).toEqual(expected);
    expectEachServedOnce();
    expect(github?.calls.count('sessions.refresh')).toBeGreaterThan(0);
  });
});
