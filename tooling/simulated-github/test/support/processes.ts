/** Stand-ins for runners as processes, and the events for which tests wait. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { LoggedEvent } from '../../src/event-log.js';

/** Collects events; tests wait for those that they expect. */
export class Events {
  private readonly texts: string[] = [];
  private readonly waiters = new Set<() => void>();

  readonly print = ({ text }: LoggedEvent): void => {
    this.texts.push(text);
    for (const waiter of this.waiters) waiter();
  };

  /** Resolves once an event with this text has occurred. */
  async have(expected: string): Promise<void> {
    while (!this.texts.includes(expected)) {
      await new Promise<void>((resolve) => {
        const waiter = (): void => {
          this.waiters.delete(waiter);
          resolve();
        };
        this.waiters.add(waiter);
      });
    }
  }
}

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

export interface RunnerProcess {
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts a program with its configuration in the environment, or in the arguments if `args` is given. */
export function startRunner(
  program: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): RunnerProcess {
  const child = spawn(program, args, { env: { PATH: process.env['PATH'], RUNNER_ALLOW_RUNASROOT: '1', ...env } });
  let output = '';
  const add = (data: Buffer): void => {
    output += data.toString('utf8');
  };
  child.stdout.on('data', add);
  child.stderr.on('data', add);
  const ended = once(child, 'close').then(([code, signal]: readonly unknown[]): Ended => ({
    ...{ code: code as number | null, signal: signal as NodeJS.Signals | null, output },
  }));
  return { ended, kill: (signal) => void child.kill(signal) };
}
