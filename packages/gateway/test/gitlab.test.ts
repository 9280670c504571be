/** The program `nodepool-gitlab` with a gateway, called as GitLab Runner calls a custom executor. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { inState, TOKENS, until, World, type RunningGateway } from './support/world.js';

const PROGRAM = join(dirname(require.resolve('@nodepool/cli/package.json')), 'dist', 'gitlab', 'bin.js');
const [BUILD_FAILURE, SYSTEM_FAILURE] = [51, 52];

/** An ssh that runs the command line here in a session of its own, as sshd does on a node. */
const LOCAL_SSH = `#!/bin/sh
for last; do :; done
exec setsid --wait sh -c "$last"
`;

let world: World;
let gateway: RunningGateway;
let folder = '';
const children: ChildProcess[] = [];

beforeAll(async () => {
  if (!existsSync(PROGRAM)) throw new Error('the program is not built; run `pnpm build` first');
  world = await World.start();
  gateway = await world.gateway();
});
beforeEach(async () => {
  world.launcher.mode = 'serve';
  folder = await mkdtemp(join(tmpdir(), 'gitlab-test-'));
  await writeFile(join(folder, 'token'), TOKENS.acme);
  await fakeSsh(LOCAL_SSH);
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});
afterAll(() => world.stop());

async function fakeSsh(text: string): Promise<void> {
  await writeFile(join(folder, 'ssh'), text);
  await chmod(join(folder, 'ssh'), 0o755);
}

/** Stands for one job of a runner. */
class Job {
  private scripts = 0;

  private constructor(
    readonly id: number,
    private readonly env: Readonly<Record<string, string>>,
  ) {}

  static async create(id: number, token: string, env: Readonly<Record<string, string>> = {}): Promise<Job> {
    const response = join(folder, `response-${id}-${token}`);
    await writeFile(response, JSON.stringify({ id, token, job_info: { name: 'test' } }));
    return new Job(id, {
      ...{ PATH: `${folder}:/usr/bin:/bin`, HOME: folder, TMPDIR: folder },
      ...{ NODEPOOL_GATEWAY: gateway.url, NODEPOOL_TOKEN_FILE: join(folder, 'token') },
      ...{ JOB_RESPONSE_FILE: response, BUILD_EXIT_CODE_FILE: join(folder, `status-${id}`) },
      ...{ BUILD_FAILURE_EXIT_CODE: String(BUILD_FAILURE), SYSTEM_FAILURE_EXIT_CODE: String(SYSTEM_FAILURE) },
      ...{ CUSTOM_ENV_CI_JOB_ID: String(id), CUSTOM_ENV_NODEPOOL_LABEL: 'debian' },
      ...env,
    });
  }

  start(...args: readonly string[]): Stage {
    return new Stage([PROGRAM, ...args], this.env);
  }

  async script(text: string): Promise<Stage> {
    const file = join(folder, `script-${this.id}-${++this.scripts}`);
    await writeFile(file, text);
    return this.start('run', file, 'build_script');
  }

  get status(): string | undefined {
    const file = join(folder, `status-${this.id}`);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  }
}

class Stage {
  readonly child: ChildProcess;
  readonly code: Promise<number | null>;
  printed = '';
  noted = '';

  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    children.push(this.child);
    this.code = once(this.child, 'close').then(([code]) => code as number | null);
    this.child.stdout?.on('data', (data: Buffer) => void (this.printed += String(data)));
    this.child.stderr?.on('data', (data: Buffer) => void (this.noted += String(data)));
  }

  /** Signals the process group, as GitLab Runner does. */
  signal(signal: NodeJS.Signals): void {
    if (this.child.exitCode === null) process.kill(-(this.child.pid ?? 0), signal);
  }

  prints(text: string): Promise<void> {
    return until(() => Promise.resolve(this.printed.includes(text)));
  }
}

async function codeOf(stage: Stage | Promise<Stage>): Promise<number | null> {
  return (await stage).code;
}

it('runs the scripts of a job on one node, and returns it', async () => {
  const job = await Job.create(1, 'one', { CUSTOM_ENV_CI_JOB_STATUS: 'success' });
  const config = job.start('--builds-dir', '/builds', 'config');
  expect(await config.code).toBe(0);
  expect(JSON.parse(config.printed)).toMatchObject({ driver: { name: 'nodepool' }, builds_dir: '/builds' });
  expect(await codeOf(job.start('prepare'))).toBe(0);
  const [node] = world.paths('/nodepool/nodes');
  const first = await job.script('echo out; echo err >&2; cat; echo "$-"; set -o pipefail; printf "%s" "${0##*/}"');
  expect(await first.code).toBe(0);
  expect([first.printed, first.noted]).toEqual([expect.stringMatching(/^out\n\w+\n9$/), 'err\n']);
  const long = await job.script(`: ${'x'.repeat(300_000)}\necho end`);
  expect([await long.code, long.printed]).toEqual([0, 'end\n']);
  expect(world.paths('/nodepool/nodes')).toContain(node);
  expect(await codeOf(job.start('cleanup'))).toBe(0);
  await world.clean();
  // Jobs of tests that run at the same time have such files, too, until their scripts start.
  await until(async () => !(await readdir('/tmp')).some((name) => /^nodepool-gitlab-[0-9a-f]{32}$/.test(name)));
  const ended = await gateway.client().list({ state: 'ended' }).next();
  expect(ended.value).toMatchObject({ end: { reason: 'released', outcome: 'success' } });
  expect(await codeOf(job.start('cleanup'))).toBe(0);
});

it('reports the status of a failed script', async () => {
  const job = await Job.create(2, 'two');
  await job.start('prepare').code;
  for (const status of [1, 7, 97, 255]) {
    expect(await codeOf(job.script(`exit ${status}`))).toBe(BUILD_FAILURE);
    expect(job.status).toBe(String(status));
  }
  await job.start('cleanup').code;
  await world.clean();
});

it('reports every other failure as one of the system', async () => {
  const job = await Job.create(3, 'three');
  const unprepared = await job.script('true');
  expect(await unprepared.code).toBe(SYSTEM_FAILURE);
  expect(unprepared.noted).toContain('the job has no lease');
  await job.start('prepare').code;
  await fakeSsh('#!/bin/sh\nexit 255\n');
  expect(await codeOf(job.script('true'))).toBe(SYSTEM_FAILURE);
  await fakeSsh(LOCAL_SSH.replace('exec setsid', 'head -c 3 | setsid'));
  const truncated = await job.script('exit 0\nexit 1\n');
  expect(await truncated.code).toBe(SYSTEM_FAILURE);
  expect(truncated.noted).toContain('status 97 before the command began');
  expect(await codeOf(job.start('unknown'))).toBe(SYSTEM_FAILURE);
  expect(await codeOf(job.start('run', '/nowhere', 'build_script'))).toBe(SYSTEM_FAILURE);
  expect(job.status).toBeUndefined();
  await job.start('cleanup').code;
  await world.clean();
});

it('a node that is lost while the script runs is a failure of the system', async () => {
  const job = await Job.create(4, 'four');
  await job.start('prepare').code;
  await writeFile(join(folder, 'running'), '');
  const running = await job.script(`echo begun; while [ -e ${folder}/running ]; do sleep 0.1; done`);
  await running.prints('begun');
  const [lease] = await collect(gateway.client().list({ state: 'ready' }));
  const handle = await world.launcher.store.nodes.adopt(lease?.nodes[0]?.id ?? '', `lease/${lease?.id}`);
  await handle?.release({ state: 'deleting' });
  await until(() => Promise.resolve(/lease \w+ has ended \(lost\)|is lost/.test(running.noted)));
  // The processes of a lost node hold the output of this ssh.
  await rm(join(folder, 'running'));
  expect(await running.code).toBe(SYSTEM_FAILURE);
  await job.start('cleanup').code;
  await world.clean();
});

it('ends the script of a cancelled job, and its processes', async () => {
  const job = await Job.create(5, 'five');
  await job.start('prepare').code;
  const running = await job.script(
    `(trap 'echo ended >${folder}/child; exit' TERM; echo begun; sleep 60 & wait) & wait`,
  );
  await running.prints('begun');
  running.signal('SIGTERM');
  expect(await running.code).toBe(SYSTEM_FAILURE);
  await until(() => Promise.resolve(existsSync(join(folder, 'child'))));
  expect(job.status).toBeUndefined();
  expect(await codeOf(job.script('echo after'))).toBe(0);
  await job.start('cleanup').code;
  await world.clean();
});

it('a job that waits for its node can be cancelled, and tried again', async () => {
  world.launcher.mode = 'wait';
  const job = await Job.create(6, 'six');
  const waiting = job.start('prepare');
  await until(() => Promise.resolve(waiting.noted.includes('queued')));
  waiting.signal('SIGTERM');
  expect(await waiting.code).toBe(SYSTEM_FAILURE);
  await world.clean();
  world.launcher.resume('fail');
  const failed = job.start('prepare');
  expect(await failed.code).toBe(SYSTEM_FAILURE);
  expect(failed.noted).toContain('the image is missing');
  world.launcher.mode = 'serve';
  await fakeSsh('#!/bin/sh\nexit 255\n');
  expect(await codeOf(job.start('prepare'))).toBe(SYSTEM_FAILURE);
  await fakeSsh(LOCAL_SSH);
  expect(await codeOf(job.start('prepare'))).toBe(0);
  expect(await codeOf(job.script('true'))).toBe(0);
  await job.start('cleanup').code;
  await world.clean();
});

it('cleanup after a kill returns the node of its own job only', async () => {
  const others = [await Job.create(7, 'another server'), await Job.create(77, 'seven')];
  for (const other of others) expect(await codeOf(other.start('prepare'))).toBe(0);
  const kept = world.paths('/nodepool/nodes');
  // The variables of a job are not its identity.
  const job = await Job.create(7, 'seven', { CUSTOM_ENV_CI_JOB_ID: '77' });
  for (const text of ['lease', 'node 0']) {
    const killed = job.start('prepare');
    await until(() => Promise.resolve(killed.noted.includes(text)));
    killed.signal('SIGKILL');
    await killed.code;
    expect(await codeOf(job.start('cleanup'))).toBe(0);
  }
  await until(() => Promise.resolve(world.paths('/nodepool/requests').length === 0));
  await until(() => Promise.resolve(world.paths('/nodepool/nodes').length === kept.length));
  expect(world.paths('/nodepool/nodes')).toEqual(kept);
  for (const other of others) {
    expect(await codeOf(other.script('true'))).toBe(0);
    await other.start('cleanup').code;
  }
  await world.clean();
});

it('a label that the token does not permit is a failure of the job', async () => {
  await writeFile(join(folder, 'token'), TOKENS.small);
  const job = await Job.create(8, 'eight', { CUSTOM_ENV_NODEPOOL_LABEL: 'windows' });
  const refused = job.start('prepare');
  expect(await refused.code).toBe(BUILD_FAILURE);
  expect(refused.noted).toContain('The token does not permit this');
});

it.each([
  ['while a stage runs', 9, '& wait'],
  ['when a stage begins', 10, '&'],
])('returns the node of a job whose runner was killed %s', async (_, id, rest) => {
  const job = await Job.create(id, 'nine');
  await job.start('prepare').code;
  const [lease] = await collect(gateway.client().list({ state: 'ready' }));
  const file = join(folder, 'endless');
  await writeFile(file, `echo $$ >${folder}/pid; while :; do sleep 0.1; done`);
  const env = (job as unknown as { readonly env: Record<string, string> }).env;
  const runner = spawn('sh', ['-c', `"${process.execPath}" "${PROGRAM}" run "${file}" build_script ${rest}`], { env });
  children.push(runner);
  const pidFile = join(folder, 'pid');
  if (rest === '& wait') {
    await until(() => Promise.resolve(existsSync(pidFile)));
    runner.kill('SIGKILL');
  } else {
    // It ends by itself right after it has started the stage, which a signal could prevent.
    await once(runner, 'exit');
  }
  await inState(gateway.client(), lease?.id ?? '', 'ended');
  await world.clean();
  const pid = existsSync(pidFile) ? readFileSync(pidFile, 'utf8').trim() : 'none';
  await until(() => Promise.resolve(!existsSync(`/proc/${pid}`)));
});

async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}
