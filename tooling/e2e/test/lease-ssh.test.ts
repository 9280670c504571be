/**
 * `nodepool lease ssh` and `nodepool-gitlab` on a machine of a rack, with OpenSSH's server: that is killed, frozen, and
 * gets other host keys, while gateway and launcher are killed.
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '@nodepool/dev-zookeeper';
import { programPath, type Program, type ProgramName } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { GatewayProcess } from './gateway-process.js';
import { Site, type LauncherSetup } from './site.js';
import { SshHost } from './ssh-hosts.js';

const DEADLINE_MS = 240_000;
const SSH_FAILED = 255;
const [BUILD_FAILURE, SYSTEM_FAILURE] = [51, 52];
const LOOK_MS = 100;

let site: Site;
let launcher: Program;
let gateway: GatewayProcess;
let host: SshHost;
let folder: string;
let setup: LauncherSetup;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-lease-ssh-'));
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'key')]);
  const [port = 0] = await freePorts(1);
  const settings = [`AuthorizedKeysFile=${join(folder, 'key.pub')}`, 'StrictModes=no'];
  host = await SshHost.start('127.0.0.31', port, join(folder, 'host'), settings);
  site = await Site.start({ maxSessionTimeout: 10_000 });
  const machine = {
    ...{ name: host.address, 'connection-port': port, labels: ['debian', 'fedora'], timeout: 2 },
    username: userInfo().username,
  };
  setup = { sections: [{ name: 'rack', driver: 'static', pools: [{ name: 'main', nodes: [machine] }] }] };
  launcher = await site.launcher(setup);
  gateway = await GatewayProcess.start(site);
}, DEADLINE_MS);

afterEach(async () => {
  await host.revive();
  for await (const { id, state } of gateway.client.list()) if (state !== 'ended') await gateway.client.release(id);
  await until(async () => {
    for await (const { state } of gateway.client.list()) if (state !== 'ended') return false;
    return true;
  });
}, DEADLINE_MS);

afterAll(async () => {
  await gateway.kill();
  await site.stop();
  await host.kill();
  rmSync(folder, { recursive: true, maxRetries: 20 });
}, DEADLINE_MS);

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Call {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Runs a program as a user does. */
async function run(program: ProgramName, args: readonly string[], { env, input }: Call = {}): Promise<Result> {
  const child = spawn(process.execPath, [programPath(program), ...args], {
    env: { ...process.env, ...gateway.env, ...env },
  });
  child.stdin.end(input ?? '');
  const closed = once(child, 'close') as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, stdout, stderr };
}

function lease(...args: readonly string[]): Promise<Result> {
  return run('nodepool', ['lease', ...args]);
}

async function create(): Promise<string> {
  const { code, stdout } = await lease('create', 'debian', '--wait', '-o', 'name');
  expect(code).toBe(0);
  return stdout.trim();
}

function ssh(id: string, ...command: readonly string[]): Promise<Result> {
  return lease('ssh', '--identity', join(folder, 'key'), id, '--', ...command);
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = systemClock.monotonic() + DEADLINE_MS;
  while (!(await condition())) {
    if (systemClock.monotonic() > end) throw new Error('the condition does not hold');
    await sleep(systemClock, LOOK_MS);
  }
}

describe('nodepool lease ssh', () => {
  it(
    'passes words, input, output and the exit status',
    async () => {
      const id = await create();
      const words = ['a b', "it's", '$HOME', '', '*', 'new\nline'];
      const printed = await ssh(id, 'printf', '[%s]', ...words);
      expect(printed).toMatchObject({ code: 0, stdout: words.map((word) => `[${word}]`).join('') });
      expect(await ssh(id, 'sh', '-c', 'echo problem >&2; exit 7')).toMatchObject({ code: 7, stderr: 'problem\n' });
      const identity = ['--identity', join(folder, 'key')];
      const piped = await run('nodepool', ['lease', 'ssh', ...identity, id, '--', 'wc', '-c'], {
        input: 'x'.repeat(100_000),
      });
      expect(piped.stdout.trim()).toBe('100000');
    },
    DEADLINE_MS,
  );

  it(
    'continues a lease after gateway and launcher were killed',
    async () => {
      const id = await create();
      await gateway.kill();
      await launcher.kill();
      await gateway.restart();
      expect(await ssh(id, 'echo', 'here')).toMatchObject({ code: 0, stdout: 'here\n' });
      launcher = await site.launcher(setup);
      expect(await ssh(id, 'echo', 'here')).toMatchObject({ code: 0, stdout: 'here\n' });
      expect((await lease('release', id, '--outcome', 'success')).code).toBe(0);
      const late = await ssh(id, 'true');
      expect(late.code).toBe(1);
      expect(late.stderr).toContain('no node in use');
    },
    DEADLINE_MS,
  );

  it(
    'trusts only the host keys that the launcher has scanned',
    async () => {
      const id = await create();
      await host.rekey();
      const refused = await ssh(id, 'touch', join(folder, 'wrong-host'));
      expect(refused.code).toBe(SSH_FAILED);
      expect(refused.stderr).toContain('Host key verification failed');
      expect(() => readFileSync(join(folder, 'wrong-host'))).toThrow('ENOENT');
      await host.kill();
      expect((await ssh(id, 'true')).code).toBe(SSH_FAILED);
      await host.revive();
      expect((await ssh(id, 'true')).code).toBe(0);
    },
    DEADLINE_MS,
  );
});

describe('nodepool-gitlab', () => {
  let number = 0;

  function stagesOf(job: number): (stage: string, ...args: readonly string[]) => Promise<Result> {
    const response = join(folder, `response-${job}`);
    writeFileSync(response, JSON.stringify({ id: job, token: `token-of-${job}` }));
    const env = {
      ...{ JOB_RESPONSE_FILE: response, BUILD_EXIT_CODE_FILE: join(folder, `status-${job}`) },
      ...{ BUILD_FAILURE_EXIT_CODE: String(BUILD_FAILURE), SYSTEM_FAILURE_EXIT_CODE: String(SYSTEM_FAILURE) },
    };
    const options = ['--label', 'debian', '--identity', join(folder, 'key'), '--timeout', '2m'];
    return (stage, ...args) => run('nodepool-gitlab', [...options, stage, ...args], { env });
  }

  function script(content: string): string {
    const file = join(folder, `script-${(number += 1)}`);
    writeFileSync(file, content);
    return file;
  }

  it(
    'reports a machine that cannot be reached as a failure of the system',
    async () => {
      const stage = stagesOf(1);
      expect(await stage('prepare')).toMatchObject({ code: 0 });
      expect(await stage('run', script('echo out; exit 3'), 'build_script')).toMatchObject({
        ...{ code: BUILD_FAILURE, stdout: 'out\n' },
      });
      expect(readFileSync(join(folder, 'status-1'), 'utf8')).toBe('3');
      for (const trouble of ['rekey', 'kill'] as const) {
        await host[trouble]();
        expect((await stage('run', script('true'), 'after_script')).code).toBe(SYSTEM_FAILURE);
      }
      await host.revive();
      expect((await stage('cleanup')).code).toBe(0);
      // The machine serves the next job.
      const next = stagesOf(2);
      expect((await next('prepare')).code).toBe(0);
      expect((await next('run', script('true'), 'build_script')).code).toBe(0);
      expect((await next('cleanup')).code).toBe(0);
    },
    DEADLINE_MS,
  );

  it(
    'reports a machine that freezes as a failure of the system',
    async () => {
      const stage = stagesOf(3);
      const id = await create();
      // The job waits for the only machine.
      const preparing = stage('prepare');
      await until(async () => (await gateway.client.list({ state: 'waiting' }).next()).done === false);
      expect((await lease('release', id)).code).toBe(0);
      expect(await preparing).toMatchObject({ code: 0 });
      host.freeze();
      const frozen = await stage('run', script('true'), 'build_script');
      expect(frozen.code).toBe(SYSTEM_FAILURE);
      expect(frozen.stderr).toMatch(/timed out|status 255/);
      await host.revive();
      expect((await stage('cleanup')).code).toBe(0);
    },
    DEADLINE_MS,
  );
});
