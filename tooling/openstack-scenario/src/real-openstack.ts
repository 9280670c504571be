/**
 * Real OpenStack services: the clouds.yaml that the environment names, or services that a script starts. The script
 * prints the path of a clouds.yaml as its last line, writes pids to `run/*.pid` below the folder in `OSTACK`, and
 * starts only the services that do not run. A script `down.sh` next to it stops the services that it started.
 */

import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { sleep, systemClock } from '@nodepool/core';
import { describeExit, Program } from '@nodepool/harness';
import { ApiClient } from '@nodepool/simulated-openstack';

export interface RealOpenStack {
  readonly cloudsYaml: string;
  /** Restarts keystone; undefined if the services were not started by the script. */
  readonly restartKeystone: (() => Promise<void>) | undefined;
  /** Stops the services that were started here. */
  release(): Promise<void>;
}

/** Clouds that the test suite and the scenario require. */
const NEEDED_CLOUDS = ['real', 'limited', 'real-admin', 'real-appcred'];
const START_TIMEOUT_MS = 1_200_000;
const STOP_TIMEOUT_MS = 120_000;
/** Polling interval for the end of a process that is not a child (ms). */
const PROCESS_POLL_MS = 50;
/** Output of the script if the machine cannot run the services. */
const UNAVAILABLE = /apt-get \w+ failed|run as root/;

/** Returns the path of the script: `NODEPOOL_OPENSTACK_UP`, or a path next to the checkout. */
function findScript(env: NodeJS.ProcessEnv): string | undefined {
  const named = env['NODEPOOL_OPENSTACK_UP'] ?? '';
  if (named !== '') {
    if (existsSync(named)) return resolve(named);
    throw new Error(`there is no ${named}: set NODEPOOL_OPENSTACK_UP to a script that starts OpenStack services`);
  }
  const beside = resolve(__dirname, '..', '..', '..', '..', 'shared', 'openstack', 'up.sh');
  return existsSync(beside) ? beside : undefined;
}

/**
 * Uses running services or starts some. Returns the reason if that is impossible here. Rejects if the named script does
 * not exist, or if services should start but do not, e.g. because of an interruption; then it stops them.
 */
export async function openRealOpenStack(
  say: (line: string) => void,
  interrupted: AbortSignal,
  env: NodeJS.ProcessEnv = process.env,
): Promise<RealOpenStack | string> {
  const running = env['OS_CLIENT_CONFIG_FILE'] ?? '';
  const script = findScript(env);
  if (running !== '') {
    const lacking = await cloudsLackingIn(running);
    if (lacking.length > 0)
      return `${running} (OS_CLIENT_CONFIG_FILE) is not a test bed: it lacks ${lacking.join(', ')}`;
    const folder = env['OSTACK'] ?? '';
    const restart = folder === '' || script === undefined ? undefined : () => restartKeystone(script, folder);
    return { cloudsYaml: running, restartKeystone: restart, release: () => Promise.resolve() };
  }
  if (script === undefined) {
    return 'there are no real services here: set OS_CLIENT_CONFIG_FILE to the clouds.yaml of a test bed, or NODEPOOL_OPENSTACK_UP to a script that starts one';
  }
  const folder = env['OSTACK'] ?? mkdtempSync(join(tmpdir(), 'openstack-'));
  say(`starting real OpenStack services in ${folder}, which takes minutes the first time`);
  const stopAll = async (): Promise<void> => {
    const problem = await stop(script, folder);
    if (problem !== undefined) say(problem);
  };
  const starting = runScript('up', script, folder, START_TIMEOUT_MS, interrupted);
  const started = await starting.catch(async (error: unknown) => {
    say('stopping the OpenStack services');
    await stopAll();
    throw error;
  });
  if ('failure' in started) {
    await stopAll();
    if (UNAVAILABLE.test(started.failure)) return `the services cannot be installed here: ${started.failure}`;
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

/** Resolves once cinder's scheduler knows a backend; before that, all volumes end in an error. */
export async function volumesPossible(cloudsYaml: string): Promise<void> {
  const api = await ApiClient.logIn(cloudsYaml, 'real-admin');
  await api.until(
    'volume',
    '/scheduler-stats/get_pools',
    (answer) => answer.status === 200 && answer.list('pools').length > 0,
  );
}

/** Kills keystone; the script then starts it again. */
async function restartKeystone(script: string, folder: string): Promise<void> {
  const [pid = ''] = readFileSync(join(folder, 'run', 'keystone.pid'), 'utf8').split(' ');
  if (!/^\d+$/.test(pid)) throw new Error(`${folder}/run/keystone.pid has no pid`);
  process.kill(Number(pid), 'SIGTERM');
  await processGone(Number(pid));
  const started = await runScript('up-again', script, folder, START_TIMEOUT_MS);
  if ('failure' in started) throw new Error(`keystone did not restart: ${started.failure}`);
}

/** Resolves once the process no longer exists or is a zombie. */
async function processGone(pid: number): Promise<void> {
  const deadline = systemClock.monotonic() + STOP_TIMEOUT_MS;
  for (;;) {
    // The third field is the state; the second, a name in parentheses, may contain spaces.
    const stat = existsSync(`/proc/${pid}/stat`) ? await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '') : '';
    if (stat === '' || stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z')) return;
    if (systemClock.monotonic() > deadline) throw new Error(`keystone (pid ${pid}) does not end`);
    await sleep(systemClock, PROCESS_POLL_MS);
  }
}

async function cloudsLackingIn(file: string): Promise<string[]> {
  if (!existsSync(file)) return ['all clouds, because the file does not exist'];
  const text = await readFile(file, 'utf8');
  return NEEDED_CLOUDS.filter((name) => !new RegExp(`^\\s*"?${name}"?:`, 'm').test(text));
}

/** Runs `down.sh`. Returns the error, or undefined if it succeeded. */
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
  interrupted?: AbortSignal,
): Promise<{ readonly lastLine: string } | { readonly failure: string }> {
  const logFile = join(folder, `${name}.log`);
  const program = await Program.start({
    name: script,
    command: 'bash',
    args: [script],
    logFile,
    env: { OSTACK: folder },
    // Services that crash write dumps into it.
    cwd: folder,
  });
  const exit = await program.ends(timeoutMs, interrupted);
  const tail = program.logTail(5);
  if (exit.code !== 0) return { failure: `${describeExit(exit)}: ${tail}` };
  return { lastLine: tail.split('\n').at(-1) ?? '' };
}
