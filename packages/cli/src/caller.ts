/** The life of a process that another program has started for one step, and that must end with it. */

import { readFileSync } from 'node:fs';
import { systemClock } from '@nodepool/core';

/** Time (ms) between looks at the parent process. */
const PARENT_CHECK_MS = 5000;

/** Programs that start no stage of a job, but become the parents of orphans. */
const ADOPTERS: readonly string[] = ['systemd', 'init'];

/** The reason of an interruption; `signal` is passed to the processes on the node. */
export class StoppedError extends Error {
  readonly signal = 'SIGTERM';
  constructor(reason: string) {
    super(reason);
    this.name = 'StoppedError';
  }
}

export interface CallerSignals {
  /** Aborts when this process must stop. */
  readonly interrupted: AbortSignal;
  /** Aborts when the process that started this one has ended. */
  readonly abandoned: AbortSignal;
}

export interface Caller {
  /** For messages, e.g. `the runner`. */
  readonly name: string;
  /** Names of its program, for a caller that is the first process of a container. */
  readonly program: RegExp;
}

/** Handles signals, and notices the end of the caller, which leaves its processes behind when it is killed. */
export function watchCaller({ name, program }: Caller): CallerSignals {
  const interruption = new AbortController();
  const abandonment = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => interruption.abort(new StoppedError(`stopped by ${signal}`)));
  }
  const parent = process.ppid;
  const isOrphan = isAdopted(parent, program);
  const watch = (): void => {
    if (process.ppid === parent && !isOrphan) {
      systemClock.schedule(PARENT_CHECK_MS, watch, { background: true });
      return;
    }
    const reason = new StoppedError(`${name} has ended`);
    abandonment.abort(reason);
    interruption.abort(reason);
  };
  watch();
  return { interrupted: interruption.signal, abandoned: abandonment.signal };
}

/** Returns true if the parent is a process that adopts orphans: the caller has ended before this process could look. */
function isAdopted(parent: number, program: RegExp): boolean {
  try {
    const name = readFileSync(`/proc/${parent}/comm`, 'utf8').trim();
    return ADOPTERS.includes(name) || (parent === 1 && !program.test(name));
  } catch {
    // Hidden from this user, or another system.
    return false;
  }
}
