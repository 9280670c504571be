/**
 * Real OpenStack services: those of which the environment names the clouds.yaml, or some that a script starts. The script
 * prints the path of a clouds.yaml as its last line, keeps pids in `run/*.pid` below the folder that `OSTACK` names, starts
 * only what does not run, and has a `down.sh` beside it that ends what it started.
 */

import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { sleep, systemClock } from '@nodepool/core';
import { describeExit, Program } from '@nodepool/harness';

export interface RealOpenStack {
  readonly cloudsYaml: string;
  /** Undefined: somebody else started it. */
  readonly restartKeystone: (() => Promise<void>) | undefined;
  /** Ends it if it was started here. */
  release(): Promise<void>;
}

/** Names of the clouds that the suite and the show need. */
const NEEDED_CLOUDS = ['real', 'limited', 'real-admin', 'real-appcred'];
const START_TIMEOUT_MS = 1_200_000;
const STOP_TIMEOUT_MS = 120_000;
/** A process of which one is not the parent has no event for its end. */
const PROCESS_POLL_MS = 50;
/** What the script says where the machine cannot have the services. */
const IMPOSSIBLE = /apt-get \w+ failed|run as root/;

/** Where the script is looked for: `NODEPOOL_OPENSTACK_UP`, or beside the checkout's folder. */
function findScript(env: NodeJS.ProcessEnv): string | undefined {
  const named = env['NODEPOOL_OPENSTACK_UP'] ?? '';
  if (named !== '') {
    if (existsSync(named)) return named;
    throw new Error(`there is no ${named}: set NODEPOOL_OPENSTACK_UP to a script that starts OpenStack services`);
  }
  const beside = resolve(__dirname, '..', '..', '..', '..', 'shared', 'openstack', 'up.sh');
  return existsSync(beside) ? beside : undefined;
}

/**
 * Takes the services that run, or starts some. A text says why that is not possible here. Rejects when they should be there
 * and do not start, or the script that is named is not there.
 */
export async function takeRealOpenStack(
  say: (line: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): Promise<RealOpenStack | string> {
  const running = env['OS_CLIENT_CONFIG_FILE'] ?? '';
  const script = findScript(env);
  if (running !== '') {
    const lacking = await cloudsLackingIn(running);
    if (lacking.length > 0)
      return `${running} (OS_CLIENT_CONFIG_FILE) is no test bed: it has no cloud ${lacking.join(', ')}`;
    const folder = env['OSTACK'] ?? '';
    const restart = folder === '' || script === undefined ? undefined : () => restartKeystone(script, folder);
    return { cloudsYaml: running, restartKeystone: restart, release: () => Promise.resolve() };
  }
  if (script === undefined) {
    return 'there are no real services here: set OS_CLIENT_CONFIG_FILE to the clouds.yaml of a test bed, or NODEPOOL_OPENSTACK_UP to a script that starts one';
  }
  const folder = env['OSTACK'] ?? mkdtempSync(join(tmpdir(), 'openstack-'));
  say(`starting real OpenStack services in ${folder}, which takes minutes the first time`);
  const started = await runScript('up', script, folder, START_TIMEOUT_MS);
  if ('failure' in started) {
    const stopped = await stop(script, folder);
    if (stopped !== undefined) say(stopped);
    if (IMPOSSIBLE.test(started.failure)) return `the services cannot be installed here: ${started.failure}`;
    throw new Error(`${script} failed: ${started.failure}`);
  }
  return {
    cloudsYaml: started.lastLine,
    restartKeystone: () => restartKeystone(script, folder),
    release: async () => {
      say('stopping the OpenStack services');
      const problem = await stop(script, folder);
      if (problem !== undefined) throw new Error(problem);
    },
  };
}

/** Ends keystone, which the script then finds missing. */
async function restartKeystone(script: string, folder: string): Promise<void> {
  const [pid = ''] = readFileSync(join(folder, 'run', 'keystone.pid'), 'utf8').split(' ');
  if (!/^\d+$/.test(pid)) throw new Error(`${folder}/run/keystone.pid has no pid`);
  process.kill(Number(pid), 'SIGTERM');
  await processGone(Number(pid));
  const started = await runScript('up-again', script, folder, START_TIMEOUT_MS);
  if ('failure' in started) throw new Error(`keystone did not come back: ${started.failure}`);
}

/** Resolves once there is no such process, or only what its parent has not taken note of yet. */
async function processGone(pid: number): Promise<void> {
  const deadline = systemClock.monotonic() + STOP_TIMEOUT_MS;
  for (;;) {
    // The third field is the state; the second, a name in brackets, may have blanks in it.
    const stat = existsSync(`/proc/${pid}/stat`) ? await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '') : '';
    if (stat === '' || stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')) return;
    if (systemClock.monotonic() > deadline) throw new Error(`keystone (pid ${pid}) does not end`);
    await sleep(systemClock, PROCESS_POLL_MS);
  }
}

async function cloudsLackingIn(file: string): Promise<string[]> {
  if (!existsSync(file)) return [`anything: the file does not exist`];
  const text = await readFile(file, 'utf8');
  return NEEDED_CLOUDS.filter((name) => !new RegExp(`^\\s*"?${name}"?:`, 'm').test(text));
}

/** Undefined: it went well. */
async function stop(script: string, folder: string): Promise<string | undefined> {
  const down = join(dirname(script), 'down.sh');
  const ended = await runScript('down', down, folder, STOP_TIMEOUT_MS);
  return 'failure' in ended && ended.failure !== '' ? `${down} failed: ${ended.failure}` : undefined;
}

async function runScript(
  name: string,
  script: string,
  folder: string,
  timeoutMs: number,
): Promise<{ readonly lastLine: string } | { readonly failure: string }> {
  const logFile = join(folder, `${name}.log`);
  const program = await Program.start({
    name: script,
    command: 'bash',
    args: [script],
    logFile,
    env: { OSTACK: folder },
  });
  const exit = await program.ends(timeoutMs);
  const tail = program.logTail(5);
  if (exit.code !== 0) return { failure: `${describeExit(exit)}: ${tail}` };
  return { lastLine: tail.split('\n').at(-1) ?? '' };
}
