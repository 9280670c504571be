/** One call of the driver: a process that leads a process group, as the runner starts it. */

import { spawn, type ChildProcess } from 'node:child_process';
import { systemClock } from '@nodepool/core';
import { signalIfThere } from '@nodepool/core/testing';

export interface DriverCommand {
  readonly executable: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly gracefulKillMs: number;
  readonly forceKillMs: number;
  readonly onStdout: (text: string) => void;
  readonly onStderr: (text: string) => void;
}

export interface DriverExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The runner sent SIGTERM. */
  readonly terminated: boolean;
  /** The runner sent SIGKILL after the time for a graceful end. */
  readonly killed: boolean;
  /** Processes of the driver's group that were left when it had ended. */
  readonly leftovers: boolean;
  /** The process could not be started, for this reason. */
  readonly notStarted?: string;
}

/** A started call, for tests that disturb it. */
export interface RunningDriver {
  readonly pid: number;
  /** Sends a signal to the driver's process alone. Returns false if it has ended. */
  signal(signal: NodeJS.Signals): boolean;
}

/** Runs the command until it ends; `aborted` sends SIGTERM to its group, and SIGKILL when its time has passed. */
export async function runDriver(
  command: DriverCommand,
  aborted: AbortSignal,
  started: (running: RunningDriver) => void,
): Promise<DriverExit> {
  let child: ChildProcess;
  try {
    child = await startProcess(command);
  } catch (error) {
    const notStarted = `failed to start command: ${String(error)}`;
    return { code: null, signal: null, terminated: false, killed: false, leftovers: false, notStarted };
  }
  const pid = child.pid ?? 0;
  child.stdout?.setEncoding('utf8').on('data', command.onStdout);
  child.stderr?.setEncoding('utf8').on('data', command.onStderr);
  let terminated = false;
  let killed = false;
  return await new Promise((resolve) => {
    const timers: { cancel(): void }[] = [];
    const end = (code: number | null, signal: NodeJS.Signals | null): void => {
      for (const timer of timers) timer.cancel();
      aborted.removeEventListener('abort', terminate);
      const leftovers = signalIfThere(-pid, 0);
      // The runner does not end them; a test must not leave them.
      if (leftovers) signalIfThere(-pid, 'SIGKILL');
      resolve({ code, signal, terminated, killed, leftovers });
    };
    const kill = (): void => {
      killed = true;
      signalIfThere(-pid, 'SIGKILL');
      timers.push(systemClock.schedule(command.forceKillMs, () => end(null, null)));
    };
    const terminate = (): void => {
      terminated = true;
      signalIfThere(-pid, 'SIGTERM');
      timers.push(systemClock.schedule(command.gracefulKillMs, kill));
    };
    // The runner waits until all copies of the pipes are closed, like `close`.
    child.once('close', end);
    started({
      pid,
      signal: (signal) => child.kill(signal),
    });
    aborted.addEventListener('abort', terminate, { once: true });
    if (aborted.aborted) terminate();
  });
}

/** Rejects if the command does not exist, or if its environment has a null byte or is larger than the kernel allows. */
async function startProcess({ executable, args, cwd, env }: DriverCommand): Promise<ChildProcess> {
  const child = spawn(executable, [...args], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  return child;
}
