/** The custom executor `nodepool-gitlab` with real daemons, ssh and ZooKeeper, and a stand-in for GitLab Runner. */

import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { signalIfThere } from '@nodepool/core/testing';
import { freePorts } from '@nodepool/dev-zookeeper';
import {
  GitLabRunner,
  runnerProgram,
  type Job,
  type JobResult,
  type RunnerConfig,
  type RunningJob,
} from '@nodepool/gitlab-runner';
import { programPath, startGateway, zooKeeperServers, type Program } from '@nodepool/harness';
import { LeaseClient, type LeaseDocument } from '@nodepool/requestor/http';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { Site, type LauncherSetup } from './site.js';

/** `pnpm scenario:gitlab`: each stage of a job is a process, so that many jobs take minutes of processor time. */
const LONG = process.env['NODEPOOL_SCENARIO'] === 'long';
const TOKEN = 'token-of-the-gitlab-runner-0123456789';
const DEADLINE_MS = 180_000;
/** Lifetime of the leases in seconds: as long as a job without a living program keeps its node. */
const LIFETIME_S = 20;

let site: Site;
let launcher: Program;
let gateway: Program;
let endpoint: string;
let folder: string;
let port: number;
let jobs = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gitlab-e2e-'));
  await promisify(execFile)('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'key')]);
  writeFileSync(join(folder, 'token'), TOKEN);
  site = await Site.start();
  endpoint = await site.cloud(['ssh=true', `authorized-keys=${join(folder, 'key.pub')}`]);
  launcher = await site.launcher(setup());
  [port = 0] = await freePorts(1);
  await runGateway();
});

afterEach(async () => {
  await nothingLeft();
});

afterAll(async () => {
  await gateway.kill();
  await site.stop();
  rmSync(folder, { recursive: true, maxRetries: 20 });
});

function setup(): LauncherSetup {
  return { providers: [{ endpoint, hostKeyChecking: true, username: userInfo().username }] };
}

async function runGateway(): Promise<void> {
  const sha256 = createHash('sha256').update(TOKEN).digest('hex');
  mkdirSync(site.folder, { recursive: true });
  const tokens = { tokens: [{ name: 'gitlab', sha256, tenant: 'acme', labels: ['debian'] }] };
  writeFileSync(join(site.folder, 'tokens.yaml'), JSON.stringify(tokens));
  gateway = await startGateway({
    folder: site.folder,
    name: 'gateway',
    config: { 'zookeeper-servers': zooKeeperServers(site.address.servers), labels: [], providers: [] },
    settings: { listen: { port }, tokens: 'tokens.yaml' },
  });
  await gateway.while('is ready', DEADLINE_MS, async (signal) => {
    while (!(await fetch(`http://127.0.0.1:${port}/ready`, { signal }).catch(() => undefined))?.ok)
      await sleep(systemClock, 100, signal);
  });
}

function client(): LeaseClient {
  return new LeaseClient({ url: `http://127.0.0.1:${port}`, token: TOKEN });
}

async function openLeases(): Promise<LeaseDocument[]> {
  const open: LeaseDocument[] = [];
  for await (const lease of client().list()) if (lease.state !== 'ended') open.push(lease);
  return open;
}

/** Resolves once no lease, request, node, instance, lock or file of a job is left. */
async function nothingLeft(): Promise<void> {
  await launcher.while('ends all leases', DEADLINE_MS, async (signal) => {
    while ((await openLeases()).length > 0) await sleep(systemClock, 200, signal);
  });
  await site.clean(launcher);
  await site.nothingLeft(launcher);
  await site.noInstances(launcher, endpoint);
  await launcher.while('serves the last jobs, whose files remain', DEADLINE_MS, async (signal) => {
    while (existsSync(runnerTmp()) && readdirSync(runnerTmp()).length > 0) await sleep(systemClock, 100, signal);
  });
}

/** The folder for temporary files of the runner's own processes, apart from those of its jobs. */
function runnerTmp(): string {
  return join(folder, 'tmp');
}

function runner(env?: Readonly<Record<string, string>>): GitLabRunner {
  return new GitLabRunner(config(env));
}

function config(env: Readonly<Record<string, string>> = {}): RunnerConfig {
  const options = ['--label', 'debian', '--identity', join(folder, 'key'), '--lifetime', `${LIFETIME_S}s`];
  // One process per call: the runner's signals must reach this program, not a shell.
  const program = [process.execPath, programPath('nodepool-gitlab'), ...options] as const;
  mkdirSync(runnerTmp(), { recursive: true });
  return {
    custom: {
      configExec: [...program, '--builds-dir', join(folder, 'builds'), 'config'],
      prepareExec: [...program, 'prepare'],
      runExec: [...program, 'run'],
      cleanupExec: [...program, 'cleanup'],
      gracefulKillTimeoutMs: 60_000,
    },
    env: {
      PATH: `${dirname(process.execPath)}${delimiter}/usr/bin${delimiter}/bin`,
      HOME: folder,
      TMPDIR: runnerTmp(),
      NODEPOOL_GATEWAY: `http://127.0.0.1:${port}`,
      NODEPOOL_TOKEN_FILE: join(folder, 'token'),
      ...env,
    },
    preparationRetryMs: 100,
    buildFailureExitCode: 81,
    systemFailureExitCode: 82,
  };
}

/** A job whose script ends only with a signal, with the number of its process in a file. */
class EndlessJob {
  readonly id = (jobs += 1);
  readonly job: Job = {
    id: this.id,
    script: [`echo $$ > ${this.file('pid')}`, 'sleep 600 & wait $!', `touch ${this.file('finished')}`],
    afterScript: [`echo "$CI_JOB_STATUS" > ${this.file('after')}`],
  };

  file(name: string): string {
    return join(folder, `${name}-${this.id}`);
  }

  /** Resolves once the script runs. */
  async begun(running: RunningJob): Promise<number> {
    const ended = { early: false };
    void running.result.then(() => (ended.early = true));
    await launcher.while('runs the script', DEADLINE_MS, async (signal) => {
      while (!existsSync(this.file('pid')) || readFileSync(this.file('pid'), 'utf8') === '') {
        if (ended.early) throw new Error(`the job has ended: ${(await running.result).trace}`);
        await sleep(systemClock, 50, signal);
      }
    });
    return Number(readFileSync(this.file('pid'), 'utf8'));
  }
}

async function run(job: Omit<Job, 'id'>, env?: Readonly<Record<string, string>>): Promise<JobResult> {
  return await runner(env).run({ id: (jobs += 1), ...job });
}

/** Starts jobs before the first test of a group, since most of their time is that of processes that start. */
function together<T>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined;
  beforeAll(() => {
    started = start();
    // The test that waits for it reports the failure.
    started.catch(() => undefined);
  });
  return async () => {
    if (started === undefined) throw new Error('the jobs have not been started');
    return await started;
  };
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

describe('a job', () => {
  const plain = together(() =>
    run({
      script: ['echo "in $PWD"', 'echo error >&2', `printf '%s' "$CI_JOB_ID" > id`],
      afterScript: ['echo "after: $CI_JOB_STATUS $(cat id)"'],
      steps: [{ name: 'release', script: ['echo released'] }],
      generated: { upload_artifacts_on_success: ['echo uploaded'], archive_cache_on_failure: ['echo never'] },
    }),
  );
  const codes = LONG ? [1, 3, 97, 124, 137, 255] : [1, 124, 255];
  const failing = together(() =>
    Promise.all(codes.map((code) => run({ script: [`exit ${code}`, 'echo never'], allowFailureExitCodes: [code] }))),
  );
  const flaky = together(() => {
    const count = join(folder, 'count');
    return run({
      script: ['true'],
      variables: [{ key: 'GET_SOURCES_ATTEMPTS', value: '3' }],
      generated: { get_sources: [`echo x >> ${count}; [ "$(wc -l < ${count})" -ge 3 ]`] },
    });
  });

  const labels = new Map([
    ['a path', '../../v1'],
    ['two lines', 'debian\nfedora'],
    ['5,000 characters', 'x'.repeat(5000)],
    ['what the token does not permit', 'fedora'],
  ]);
  const refused = together(async () => {
    const results = [...labels].map(async ([name, value]) => {
      const job = { script: ['true'], variables: [{ key: 'NODEPOOL_LABEL', value }] };
      return [name, await run(job)] as const;
    });
    return new Map(await Promise.all(results));
  });

  it('succeeds on a node of its own', async () => {
    const result = await plain();
    expect(result).toMatchObject({ status: 'success', violations: [] });
    for (const text of [`in ${folder}/builds`, 'error', 'released', 'after: success 1', 'uploaded'])
      expect(result.trace).toContain(text);
    expect(result.trace).not.toContain('never\n');
    expect(result.trace).toContain('Using Custom executor with driver nodepool');
  });

  it('fails with the exit code of its script', async () => {
    const results = await failing();
    expect(results).toMatchObject(
      codes.map((exitCode) => ({
        ...{ status: 'failed', failureReason: 'script_failure', exitCode, allowedToFail: true, violations: [] },
      })),
    );
  });

  it('repeats a stage as often as its variable says', async () => {
    const result = await flaky();
    expect(result).toMatchObject({ status: 'success', violations: [] });
    expect(result.calls.map(({ stage }) => stage).filter(Boolean)).toEqual([
      ...['prepare_script', 'get_sources', 'clear_worktree', 'get_sources', 'get_sources', 'build_script'],
      'cleanup_file_variables',
    ]);
  });

  it('passes hostile variables on unchanged, and cannot reach another job with them', async () => {
    const hostile = `'; exit 3 #\n"$(exit 4)\`exit 5\`\r\t\\ %n é \u{1F600}`;
    const large = 'x'.repeat(100_000);
    const victim = new EndlessJob();
    const running = runner().start(victim.job);
    const pid = await victim.begun(running);
    const result = await run({
      variables: [
        { key: 'HOSTILE', value: hostile },
        { key: 'HOSTILE_FILE', value: hostile, file: true },
        ...Array.from({ length: 10 }, (_, index) => ({ key: `LARGE_${index}`, value: large })),
        { key: 'CI_JOB_ID', value: String(victim.id) },
        { key: 'CI_JOB_TOKEN', value: `glcbt-secret-of-${victim.id}` },
        { key: 'CI_JOB_STATUS', value: hostile },
        { key: 'CI_PROJECT_PATH', value: `${hostile}${large}` },
        { key: 'NODEPOOL_GATEWAY', value: 'http://127.0.0.1:1' },
        { key: 'NODEPOOL_TOKEN', value: 'x' },
      ],
      script: [
        `printf '%s' "$HOSTILE" > ${folder}/plain; cp "$HOSTILE_FILE" ${folder}/file`,
        'echo "large: ${#LARGE_0} ${#LARGE_9}"',
      ],
    });
    expect(result).toMatchObject({ status: 'success', violations: [] });
    expect([readFileSync(`${folder}/plain`, 'utf8'), readFileSync(`${folder}/file`, 'utf8')]).toEqual([
      hostile,
      hostile,
    ]);
    expect(result.trace).toContain('large: 100000 100000');
    expect(isAlive(pid)).toBe(true);
    running.cancel();
    expect(await running.result).toMatchObject({ status: 'canceled', violations: [] });
  });

  it.each([...labels.keys()])('whose label is %s fails', async (name) => {
    const result = (await refused()).get(name);
    expect(result).toMatchObject({ status: 'failed', failureReason: 'script_failure', violations: [] });
    expect(result?.calls.map(({ phase }) => phase)).toEqual(['config', 'prepare', 'cleanup']);
  });

  it('with variables that no process can receive leaves nothing', async () => {
    for (const value of ['a\0b', 'x'.repeat(1 << 20)]) {
      const result = await run({ script: ['true'], variables: [{ key: 'IMPOSSIBLE', value }] });
      expect(result).toMatchObject({ status: 'failed', failureReason: 'runner_system_failure' });
    }
  });

  it('runs at the same time as others of its runner, each on a node of its own', async () => {
    const shared = runner();
    const both = [new EndlessJob(), new EndlessJob()];
    const running = both.map(({ job }) => shared.start(job));
    const pids = await Promise.all(both.map((each, index) => each.begun(running[index] as RunningJob)));
    const nodes = (await openLeases()).flatMap((lease) => lease.nodes.map(({ id }) => id));
    expect(new Set(nodes).size).toBe(2);
    running[0]?.cancel();
    await running[0]?.result;
    expect(pids.map(isAlive)).toEqual([false, true]);
    running[1]?.cancel();
    expect(await running[1]?.result).toMatchObject({ status: 'canceled', violations: [] });
  });
});

describe('the end of a job', () => {
  /** Cancels a job once its script runs. */
  async function cancelled(script: readonly string[] = []) {
    const endless = new EndlessJob();
    const running = runner().start({ ...endless.job, script: [...script, ...endless.job.script] });
    const pid = await endless.begun(running);
    running.cancel();
    return { endless, pid, result: await running.result };
  }

  /** Sends SIGTERM to one call of a job. */
  async function stoppedIn(name: string) {
    const endless = new EndlessJob();
    const running = runner().start(
      name === 'cleanup' ? { id: endless.id, script: ['true'] } : endless.job,
      (phase, stage, driver) => {
        if ((stage ?? phase) !== name) return;
        void sleep(systemClock, 150).then(() => driver.signal('SIGTERM'));
      },
    );
    return await running.result;
  }

  const plain = together(() => cancelled());
  const stubborn = together(() => cancelled(["trap '' TERM"]));
  const stages = ['prepare', 'build_script', 'cleanup'];
  const stopped = together(
    async () => new Map(await Promise.all(stages.map(async (name) => [name, await stoppedIn(name)] as const))),
  );

  it('that is cancelled ends its processes, and its later stages run on the same node', async () => {
    const { endless, pid, result } = await plain();
    expect(result).toMatchObject({ status: 'canceled', violations: [] });
    expect(readFileSync(endless.file('after'), 'utf8')).toBe('canceled\n');
    expect([isAlive(pid), existsSync(endless.file('finished'))]).toEqual([false, false]);
  });

  it('whose processes ignore SIGTERM ends them too', async () => {
    const { pid, result } = await stubborn();
    expect(result).toMatchObject({ status: 'canceled', violations: [] });
    expect(isAlive(pid)).toBe(false);
  });

  it.each(stages)('in which %s is stopped leaves nothing', async (name) => {
    const result = (await stopped()).get(name);
    if (name === 'cleanup') expect(result?.status).toBe('success');
    else expect(result).toMatchObject({ status: 'failed', failureReason: 'runner_system_failure' });
    // Node.js handles signals once it has started; until then, they end it.
    const early = /^cleanup_exec failed|ended with signal SIGTERM/;
    expect(result?.violations.filter((text) => !early.test(text))).toEqual([]);
  });

  it('that reaches its time limit ends its processes', async () => {
    const endless = new EndlessJob();
    const running = runner().start(endless.job);
    const pid = await endless.begun(running);
    // A limit in seconds would end the job before its script on a busy machine.
    running.reachTimeLimit();
    const result = await running.result;
    expect(result).toMatchObject({ status: 'failed', failureReason: 'job_execution_timeout', violations: [] });
    expect([isAlive(pid), existsSync(endless.file('after'))]).toEqual([false, false]);
  });

  it('whose node is lost is a failure of the system', async () => {
    const endless = new EndlessJob();
    const running = runner().start(endless.job);
    const pid = await endless.begun(running);
    for (const lease of await openLeases()) for (const node of lease.nodes) await deleteInstanceOf(node.id);
    const result = await running.result;
    // The processes of an example instance survive it.
    signalIfThere(pid);
    expect(result).toMatchObject({ status: 'failed', failureReason: 'runner_system_failure', violations: [] });
    expect(result.exitCode).toBeUndefined();
  });

  it('in which a call is killed at any moment leaves nothing', async () => {
    const moments: Readonly<Record<string, readonly number[]>> = {
      prepare: LONG ? [0, 300, 700, 1500] : [0, 700],
      prepare_script: [200],
      build_script: LONG ? [0, 500, 1500] : [500],
      cleanup: LONG ? [0, 200, 400] : [200],
    };
    const expected = { prepare: 'canceled', cleanup: 'success' } as Readonly<Record<string, string>>;
    const shared = runner();
    const killed = Object.entries(moments).flatMap(([name, delays]) =>
      delays.map(async (delayMs) => {
        const endless = new EndlessJob();
        const job = name === 'cleanup' ? { id: endless.id, script: ['true'] } : endless.job;
        let isFirst = true;
        const moment = { isMissed: false };
        const running: RunningJob = shared.start(job, (phase, stage, driver) => {
          // Later attempts are not disturbed.
          if ((stage ?? phase) !== name || !isFirst) return;
          isFirst = false;
          void sleep(systemClock, delayMs).then(() => {
            if (driver.signal('SIGKILL') || name === 'cleanup') return;
            // A busy machine can be late.
            moment.isMissed = true;
            running.cancel();
          });
          if (name !== 'prepare') return;
          endless.begun(running).then(
            () => running.cancel(),
            () => undefined,
          );
        });
        const { status } = await running.result;
        expect(status).toBe(moment.isMissed ? 'canceled' : (expected[name] ?? 'failed'));
        if (existsSync(endless.file('pid'))) signalIfThere(Number(readFileSync(endless.file('pid'), 'utf8')));
      }),
    );
    await Promise.all(killed);
    rmSync(runnerTmp(), { recursive: true });
  });

  describe('whose runner dies', () => {
    async function deathIn(name: string): Promise<EndlessJob> {
      const endless = new EndlessJob();
      const job = name === 'cleanup' ? { id: endless.id, script: ['true'] } : endless.job;
      const file = join(folder, `job-${endless.id}.json`);
      writeFileSync(file, JSON.stringify({ config: config(), job }));
      const dying = spawn(process.execPath, [runnerProgram(), file], { stdio: ['ignore', 'pipe', 'inherit'] });
      for await (const line of createInterface(dying.stdout)) if (line === name) break;
      await sleep(systemClock, 400);
      dying.kill('SIGKILL');
      return endless;
    }

    const deaths = together(
      async () => new Map(await Promise.all(stages.map(async (name) => [name, await deathIn(name)] as const))),
    );

    it.each(stages)('in %s leaves nothing', async (name) => {
      const endless = (await deaths()).get(name);
      await nothingLeft();
      const pidFile = endless?.file('pid') ?? '';
      if (existsSync(pidFile)) expect(isAlive(Number(readFileSync(pidFile, 'utf8')))).toBe(false);
    });
  });
});

describe('a job continues', () => {
  it('while the gateway and the launcher are killed and come back', async () => {
    const endless = new EndlessJob();
    const script = [
      `echo $$ > ${endless.file('pid')}`,
      `until [ -e ${endless.file('go')} ]; do sleep 0.1; done`,
      'exit 7',
    ];
    const running = runner().start({ ...endless.job, script });
    await endless.begun(running);
    await Promise.all([gateway.kill(), launcher.kill()]);
    await sleep(systemClock, 3000);
    await runGateway();
    writeFileSync(endless.file('go'), '');
    const result = await running.result;
    launcher = await site.launcher(setup());
    expect(result).toMatchObject({ failureReason: 'script_failure', exitCode: 7, violations: [] });
    expect(readFileSync(endless.file('after'), 'utf8')).toBe('failed\n');
  });

  it('although the gateway is away when it is prepared', async () => {
    await gateway.kill();
    const running = runner().start({ id: (jobs += 1), script: ['echo done'] });
    await sleep(systemClock, 3000);
    await runGateway();
    expect(await running.result).toMatchObject({ status: 'success', violations: [] });
  });
});

async function deleteInstanceOf(node: string): Promise<void> {
  const record = JSON.parse(Buffer.from((await site.zooKeeper.get(`/nodepool/nodes/${node}`)).data).toString()) as {
    readonly external_id: string;
  };
  const answer = await fetch(`${endpoint}/v1/instances/${record.external_id}`, { method: 'DELETE' });
  expect(answer.ok).toBe(true);
}
