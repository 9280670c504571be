/** `nodepool run` and `nodepool request` as processes, with nodes whose SSH server is OpenSSH. */

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { conditionMet, configFileOf, programPath, type Program } from '@nodepool/harness';
import { Site, type LauncherSetup } from './site.js';

const NODES = '/nodepool/nodes';
const DEADLINE_MS = 120_000;

let site: Site;
let launcher: Program;
let folder: string;
let key: string;

/** A running `nodepool`. */
interface Running {
  readonly child: ChildProcess;
  /** Standard output so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-run-e2e-'));
  key = join(folder, 'key');
  await promisify(execFile)('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  site = await Site.start({ maxSessionTimeout: 10_000 });
  launcher = await site.launcher(setup());
});

afterAll(async () => {
  await site.stop();
  rmSync(folder, { recursive: true, maxRetries: 20 });
});

function setup(): LauncherSetup {
  const cloud = { ssh: true, 'authorized-keys': `${key}.pub` };
  return { providers: [{ cloud, hostKeyChecking: true, username: userInfo().username }] };
}

function nodepool(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const config = configFileOf({ folder: site.folder, name: launcher.name });
  const child = spawn(process.execPath, [programPath('nodepool'), '-c', config, '--connect-timeout', '300', ...args], {
    cwd: folder,
    env: { ...process.env, HOME: folder, ...env },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<Awaited<Running['ended']>>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

function run(...args: readonly string[]): Running {
  return nodepool(['run', '--label', 'debian', '--identity', key, ...args]);
}

/** Resolves once the command has printed the text. */
async function printed({ child, stdout, stderr, ended }: Running, text: string): Promise<void> {
  const seen = new Promise<void>((resolve) => {
    const look = (): void => {
      if (`${stdout()}${stderr()}`.includes(text)) resolve();
    };
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', look);
    look();
  });
  await Promise.race([
    seen,
    ended.then(() => {
      throw new Error(`it ended without printing ${text}:\n${stderr()}`);
    }),
  ]);
}

async function nodeInState(state: string): Promise<Readonly<Record<string, unknown>>> {
  let found: Readonly<Record<string, unknown>> = {};
  await launcher.while(`has a node that is ${state}`, DEADLINE_MS, (signal) =>
    conditionMet(site.zooKeeper, NODES, signal, async () => {
      for (const id of (await site.zooKeeper.children(NODES)).children) {
        const { data } = await site.zooKeeper.get(`${NODES}/${id}`);
        found = { ...(JSON.parse(Buffer.from(data).toString()) as object), id };
        if (found['state'] === state) return true;
      }
      return false;
    }),
  );
  return found;
}

describe('the command of docs/requestors.md', () => {
  const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'requestors.md'), 'utf8');
  const commands = [...page.matchAll(/```sh\nnodepool (.*)\n```/g)].map(([, text = '']) => text);

  it.each(commands)('nodepool %s works', async (text) => {
    const args = text.replace('ci_key', key).split(' ');
    const { code, stdout, stderr } = await nodepool(args).ended;

    expect([code, stderr]).toEqual([0, expect.stringContaining('fulfilled')]);
    if (text.startsWith('run ')) expect(stdout).toMatch(/^Linux /);
    else
      expect(
        stdout
          .trimEnd()
          .split('\n')
          .map((line) => (JSON.parse(line) as { event: string }).event)
          .slice(-2),
      ).toEqual(['leased', 'returned']);
  });

  it('has two examples', () => expect(commands).toHaveLength(2));
});

describe('a closed output', () => {
  it('does not change the exit status', async () => {
    const file = join(folder, 'invalid.yaml');
    writeFileSync(file, 'unknown: 1\n');
    const running = nodepool(['-c', file, 'config-validate']);
    for (const stream of [running.child.stdout, running.child.stderr]) stream?.destroy();
    expect((await running.ended).code).toBe(1);
  });

  it('is an error if it is a full disk', async () => {
    const config = configFileOf({ folder: site.folder, name: launcher.name });
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [programPath('nodepool'), '-c', config, 'list'], {
      stdio: ['ignore', full, 'pipe'],
    });
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    const code = await new Promise((resolve) => void child.once('close', resolve));
    closeSync(full);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^nodepool: the output cannot be written: .*ENOSPC/)]);
  });
});

describe('nodepool request', () => {
  it('returns the nodes if its output is closed', async () => {
    const running = nodepool(['request', 'debian', '--no-wait', '--hold', '600']);
    running.child.stdout?.destroy();
    const { code, stderr } = await running.ended;
    expect([code, stderr]).toEqual([0, expect.stringContaining('the nodes are returned')]);
  });

  it('prints the reasons of the launchers if the request fails', async () => {
    const { code, stdout, stderr } = await nodepool(['request', 'debian', 'plan9', '--format', 'json']).ended;

    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as object)
        .at(-1),
    ).toMatchObject({
      event: 'failed',
      code: 'request-failed',
      reason: expect.stringMatching(/^request 200-\d{10} failed: pool .* declined: /),
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('no pool has label plan9')]);
  });
});

describe('nodepool run', () => {
  it('passes input, output and the exit status through, and returns the node', async () => {
    const running = run(
      '--env',
      'GREETING=hello world',
      '--',
      'sh',
      '-c',
      'echo "$GREETING $(cat)"; echo oops >&2; exit 7',
    );
    running.child.stdin?.end('from here');
    const { code, stdout, stderr } = await running.ended;

    expect([code, stdout]).toEqual([7, 'hello world from here\n']);
    expect(stderr).toMatch(/fulfilled\n(.*\n)*oops\nnode \d+: the command ended with status 7\n$/);
    await site.clean(launcher);
  });

  it('passes signals on to the command', async () => {
    const running = run('--', 'sh', '-c', 'trap "echo stopped; exit 9" TERM; echo begun; while :; do sleep 0.1; done');
    await printed(running, 'begun');
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.ended;

    expect([code, stdout]).toEqual([9, 'begun\nstopped\n']);
  });

  it('ends the command if its output is closed, and returns the node', async () => {
    const script = 'trap "" PIPE; echo begun; sleep 1; while :; do echo more; done';
    const running = run('--', 'sh', '-c', script);
    await printed(running, 'begun');
    running.child.stdout?.destroy();
    const { code, stderr } = await running.ended;

    expect([code, stderr]).toEqual([143, expect.stringContaining('the command ended with status 143')]);
    await site.clean(launcher);
  });

  it('runs on many nodes without warnings', async () => {
    const { code, stderr } = await run('--count', '12', '--', 'true').ended;
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('Warning')]);
  });

  it('ends on the second signal, and launchers delete the node', async () => {
    const running = run('--', 'sh', '-c', 'trap "" INT; echo begun; sleep 20');
    await printed(running, 'begun');
    running.child.kill('SIGINT');
    await printed(running, 'another signal ends');
    running.child.kill('SIGINT');
    await running.ended;
    await site.clean(launcher);

    expect(running.child.exitCode).toBe(1);
  });

  it('loses the node if it is killed', async () => {
    const running = run('--', 'sh', '-c', 'echo begun; sleep 20');
    await printed(running, 'begun');
    running.child.kill('SIGKILL');
    await site.clean(launcher);
  });

  it('ends the command after --timeout', async () => {
    const { code, stderr } = await run('--timeout', '1s', '--', 'sleep', '60').ended;

    expect([code, stderr]).toEqual([124, expect.stringContaining('the command was ended after 1 s')]);
  });

  it('runs the command on several nodes, and reports the first failure', async () => {
    const { code, stdout } = await run('--count', '3', '--', 'sh', '-c', 'echo "on $SSH_CONNECTION"; exit 5').ended;

    expect(code).toBe(5);
    const lines = stdout.trimEnd().split('\n');
    expect(new Set(lines.map((line) => /^(\d{10}): on 127\.0\.0\.1 /.exec(line)?.[1])).size).toBe(3);
  });

  it.each(['rsync', 'scp'])('copies files and folders with %s', async (program) => {
    mkdirSync(join(folder, 'source', 'inner'), { recursive: true });
    writeFileSync(join(folder, 'source', 'inner', 'file with spaces'), 'one');
    writeFileSync(join(folder, 'single'), 'two');
    const programs = join(folder, `path-of-${program}`);
    mkdirSync(programs);
    const search = (process.env['PATH'] ?? '').split(delimiter);
    for (const name of ['ssh', program]) {
      const { stdout } = await promisify(execFile)('sh', ['-c', `command -v ${name}`], {
        env: { PATH: search.join(delimiter) },
      });
      symlinkSync(stdout.trim(), join(programs, name));
    }
    // All instances share the files of this machine.
    const target = join(folder, `target-of-${program}`);
    const copies = ['--copy', `source:${target}/folder`, '--copy', `single:${target}/folder/name`];
    const command = ['--', 'sh', '-c', `cd ${target}/folder && cat 'inner/file with spaces' name`];
    const args = ['run', '--label', 'debian', '--identity', key, ...copies, ...command];
    const { code, stdout, stderr } = await nodepool(args, { PATH: programs }).ended;

    expect([code, stdout, stderr]).toEqual([0, 'onetwo', expect.any(String)]);
  });

  it('holds the node of a failed command, and prints how to log in', async () => {
    const { code, stderr } = await run('--hold-on-failure', '1h', '--', 'sh', '-c', 'exit 3').ended;
    expect(code).toBe(3);
    const node = await nodeInState('hold');
    expect(node).toMatchObject({ hold_expiration: 3600, comment: expect.stringMatching(/sh -c 'exit 3'.*status 3/) });
    const [, help = ''] = /Log in with:\n([^]*)$/.exec(stderr) ?? [];
    const login = await promisify(execFile)('sh', ['-ec', `${help.trim()} 'echo $((6 * 7))'`], {
      cwd: folder,
      env: { ...process.env, HOME: folder },
    });
    expect(login.stdout).toBe('42\n');
    expect((await nodepool(['delete', String(node['id']), '--now']).ended).code).toBe(0);
  });

  it('does not use a node with another host key than the scanned one', async () => {
    await site.reconfigure(launcher, { ...setup(), minReady: { fedora: 1 } });
    const ready = await nodeInState('ready');
    const path = `${NODES}/${String(ready['id'])}`;
    const { data } = await site.zooKeeper.get(path);
    const otherKey = readFileSync(`${key}.pub`, 'utf8').split(' ').slice(0, 2).join(' ');
    const record = JSON.parse(Buffer.from(data).toString()) as object;
    await site.zooKeeper.set(path, Buffer.from(JSON.stringify({ ...record, host_keys: [otherKey] })));
    const { code, stderr } = await nodepool(['run', '--label', 'fedora', '--identity', key, '--', 'true']).ended;

    expect([code, stderr]).toEqual([255, expect.stringContaining('Host key verification failed')]);
    expect(stderr).toContain('ssh ended with status 255 before the command began');
  });
});
