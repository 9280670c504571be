/**
 * Processes and process groups of other programs, as the kernel reports them. Processes of root are signalled through
 * `sudo`, because builds often run as root while the builder does not.
 */

import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { errorCodeOf, sleep, type Clock } from '@nodepool/core';

const POLL_INTERVAL_MS = 100;
/** Time limit (ms) of a command; the deletion of a root file system takes minutes on a slow disk. */
const COMMAND_TIMEOUT_MS = 600_000;

const execute = promisify(execFile);

/** A process. The kernel uses process ids again, so the start time belongs to the identity. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since the machine started. */
  readonly startTime: string;
}

interface ProcessState extends ProcessIdentity {
  readonly group: number;
  /** True if the process has ended and its parent has not read its exit status yet. */
  readonly isZombie: boolean;
}

/** Parses `/proc/<pid>/stat`. Returns undefined if the text has another form. */
export function parseProcessStat(text: string): ProcessState | undefined {
  // The name of the program is in parentheses and can contain spaces and parentheses.
  const [state, , group, ...rest] = text
    .slice(text.lastIndexOf(')') + 1)
    .trim()
    .split(/\s+/);
  const startTime = rest[16];
  const pid = Number.parseInt(text, 10);
  if (state === undefined || group === undefined || startTime === undefined || !(pid > 0)) return undefined;
  return { pid, startTime, group: Number(group), isZombie: state === 'Z' || state === 'X' };
}

/** Resolves with true if the process has not ended. */
export async function isRunning({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  const state = await stateOf(String(pid));
  return state !== undefined && state.startTime === startTime && !state.isZombie;
}

/** Resolves with true if the process group that the process leads, or has led, contains a process. */
export async function isGroupRunning({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  const state = await stateOf(String(pid));
  // The kernel does not use the id of an existing group for a new process.
  if (state !== undefined && state.startTime !== startTime) return false;
  try {
    process.kill(-pid, 0);
  } catch (error) {
    if (errorCodeOf(error) === 'ESRCH') return false;
    if (errorCodeOf(error) !== 'EPERM') throw error;
  }
  const members = (await allStates()).filter(({ group }) => group === pid);
  // Without any visible member, /proc hides the processes of other users.
  return members.length === 0 || members.some(({ isZombie }) => !isZombie);
}

/** Resolves with true once the group contains no process, or with false after `limitMs`. */
export async function groupEnds(leader: ProcessIdentity, clock: Clock, limitMs: number): Promise<boolean> {
  const end = clock.monotonic() + limitMs;
  while (await isGroupRunning(leader)) {
    if (clock.monotonic() >= end) return false;
    await sleep(clock, POLL_INTERVAL_MS);
  }
  return true;
}

/** Signals a process, or a group if `target` is negative; through `sudo` if it belongs to root. */
export async function sendSignal(target: number, signal: NodeJS.Signals): Promise<void> {
  try {
    process.kill(target, signal);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ESRCH') return;
    if (code !== 'EPERM') throw error;
    await sendSignalAsRoot(target, signal);
  }
}

export function sendSignalAsRoot(target: number, signal: NodeJS.Signals): Promise<void> {
  return runAsRoot('kill', ['-s', signal.replace(/^SIG/, ''), '--', String(target)]);
}

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** Runs a command as root, through `sudo` without a password if this process is not root. */
export function runAsRoot(command: string, args: readonly string[]): Promise<void> {
  return isRoot() ? run(command, args) : run('sudo', ['-n', command, ...args]);
}

/** Runs a command. Rejects with its error output if it fails. */
export async function run(command: string, args: readonly string[]): Promise<void> {
  try {
    await execute(command, args, { timeout: COMMAND_TIMEOUT_MS, env: { ...process.env, LC_ALL: 'C' } });
  } catch (error) {
    const { stderr } = error as { readonly stderr?: unknown };
    const said = typeof stderr === 'string' ? stderr.trim() : '';
    if (said === '') throw error;
    throw new Error(`${[command, ...args].join(' ')}: ${said}`, { cause: error });
  }
}

async function stateOf(pid: string): Promise<ProcessState | undefined> {
  try {
    return parseProcessStat(await readFile(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(errorCodeOf(error) ?? '')) return undefined;
    throw error;
  }
}

async function allStates(): Promise<readonly ProcessState[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return (await Promise.all(pids.map(stateOf))).filter((state) => state !== undefined);
}
