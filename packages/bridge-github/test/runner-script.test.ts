/** The scripts that run on nodes, with the shell of this host. */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startScript, stopScript, waitScript } from '../src/runners/runner-script.js';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'nodepool-runner-script-'));
  mkdirSync(join(home, 'actions-runner'));
});
afterEach(() => rmSync(home, { recursive: true }));

/** Starts a runner, and resolves with its process group. */
async function start(program: string): Promise<number> {
  const path = join(home, 'actions-runner', 'run.sh');
  writeFileSync(path, `#!/bin/sh\n${program}\n`);
  chmodSync(path, 0o755);
  const script = startScript({ runner: 'linux-1', folder: 'actions-runner', environment: {} });
  const ssh = spawn('/bin/sh', ['-c', script], { cwd: home, env: { ...process.env, HOME: home } });
  ssh.stdin.end('secret\n');
  for await (const line of createInterface({ input: ssh.stdout })) if (line.includes('online')) break;
  ssh.kill('SIGKILL');
  await once(ssh, 'close');
  return Number(readFileSync(join(home, '.nodepool-runners', 'linux-1', 'pid'), 'utf8'));
}

/** Returns true if a process of the group runs; ended ones that nothing has waited for do not count. */
function isRunning(group: number): boolean {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pgid=,stat='], { encoding: 'utf8' });
  return stdout.split('\n').some((line) => {
    const [pgid, state = 'Z'] = line.trim().split(/\s+/);
    return Number(pgid) === group && !state.startsWith('Z');
  });
}

it.each([
  ['that ends when it is asked to', 'echo "Connected to GitHub"; sleep 600'],
  ['that starts other programs', 'sleep 600 & echo "Connected to GitHub"; sleep 601'],
  ['that ignores the request', 'trap "" TERM; echo "Connected to GitHub"; sleep 600'],
])('a runner %s is ended with all its processes, and its folder is deleted', async (_what, program) => {
  const group = await start(program);
  expect(isRunning(group)).toBe(true);
  const { status } = spawnSync('/bin/sh', ['-c', stopScript('linux-1')], { env: { ...process.env, HOME: home } });
  expect([status, isRunning(group), existsSync(join(home, '.nodepool-runners', 'linux-1'))]).toEqual([0, false, false]);
});

it('a runner survives the end of its ssh session', async () => {
  const group = await start('echo "Connected to GitHub"; sleep 600');
  expect(isRunning(group)).toBe(true);
  process.kill(-group, 'SIGKILL');
});

it('a runner that is stopped before it has stored its process id does not start', async () => {
  const bin = join(home, 'bin');
  mkdirSync(bin);
  const stopped = join(home, 'stopped');
  const wait = `while [ ! -e '${stopped}' ]; do sleep 0.1; done`;
  writeFileSync(join(bin, 'setsid'), `#!/bin/sh\n${wait}\nexec /usr/bin/setsid "$@"\n`, { mode: 0o755 });
  const started = join(home, 'started');
  writeFileSync(join(home, 'actions-runner', 'run.sh'), `#!/bin/sh\ntouch '${started}'\n`, { mode: 0o755 });
  const env = { ...process.env, HOME: home, PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  const script = startScript({ runner: 'linux-1', folder: 'actions-runner', environment: {} });
  const ssh = spawn('/bin/sh', ['-c', script], { cwd: home, env });
  ssh.stdin.end('secret\n');
  const lines: string[] = [];
  for await (const line of createInterface({ input: ssh.stdout })) {
    lines.push(line);
    if (line !== 'nodepool-runner: started') continue;
    spawnSync('/bin/sh', ['-c', stopScript('linux-1')], { env });
    writeFileSync(stopped, '');
  }
  expect(lines).toEqual(['nodepool-runner: started', 'nodepool-runner: lost']);
  expect(existsSync(started)).toBe(false);
});

it('the end of a runner is reported in a line of its own, whatever the runner has written', async () => {
  writeFileSync(join(home, 'actions-runner', 'run.sh'), '#!/bin/sh\nprintf unfinished\nexit 7\n', { mode: 0o755 });
  const script = startScript({ runner: 'linux-1', folder: 'actions-runner', environment: {} });
  const ssh = spawn('/bin/sh', ['-c', script], { cwd: home, env: { ...process.env, HOME: home } });
  ssh.stdin.end('secret\n');
  const lines: string[] = [];
  for await (const line of createInterface({ input: ssh.stdout })) lines.push(line);
  expect(lines).toEqual(['nodepool-runner: started', 'unfinished', 'nodepool-runner: ended 7']);
});

it('a runner is ended although the home folder is spelled differently', async () => {
  const group = await start('echo "Connected to GitHub"; sleep 600');
  spawnSync('/bin/sh', ['-c', stopScript('linux-1')], { env: { ...process.env, HOME: `${home}/` } });
  expect(isRunning(group)).toBe(false);
});

describe('a process that has the id of a runner that was killed', () => {
  let innocent: ChildProcess;

  beforeEach(async () => {
    const group = await start('echo "Connected to GitHub"; sleep 600');
    process.kill(-group, 'SIGKILL');
    innocent = spawn(
      '/bin/sh',
      ['-c', 'sleep 600; :', 'nodepool-runner', join(home, '.nodepool-runners', 'linux-11')],
      { detached: true, stdio: 'ignore' },
    );
    await once(innocent, 'spawn');
    writeFileSync(join(home, '.nodepool-runners', 'linux-1', 'pid'), `${innocent.pid ?? 0}\n`);
  });
  afterEach(() => {
    process.kill(-(innocent.pid ?? 0), 'SIGKILL');
  });

  it('is not ended in its place', () => {
    const { status } = spawnSync('/bin/sh', ['-c', stopScript('linux-1')], { env: { ...process.env, HOME: home } });
    expect([status, isRunning(innocent.pid ?? 0)]).toEqual([0, true]);
    expect(existsSync(join(home, '.nodepool-runners', 'linux-1'))).toBe(false);
  });

  it('is not taken for it', () => {
    const { stdout } = spawnSync('/bin/sh', ['-c', waitScript('linux-1')], {
      env: { ...process.env, HOME: home },
      encoding: 'utf8',
    });
    expect(stdout).toBe('nodepool-runner: lost\n');
  });
});
