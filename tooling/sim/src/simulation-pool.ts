/** Runs simulations in separate processes, so that a launcher that ends its process affects only one run. */

import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { RunOptions, RunResult } from './simulate.js';

/** The options of a run, as a message to a worker process. */
export interface RunOrder extends Pick<
  RunOptions,
  'seed' | 'fault' | 'launchers' | 'requests' | 'waitLimitMs' | 'only'
> {
  /** Name of one of the mutations. */
  readonly mutation?: string;
  /** Rules to ignore. */
  readonly without?: readonly string[];
  /** True for a run with bridges for GitHub Actions. Default false. */
  readonly bridges?: boolean;
}

interface PendingRun {
  readonly order: RunOrder;
  readonly resolve: (result: RunResult) => void;
}

/** Maximum length of a crashed worker's output that is kept (characters). */
const MAX_OUTPUT = 2000;

/** Worker processes that run simulations, each one at a time. */
export class SimulationPool {
  private readonly pending: PendingRun[] = [];
  private readonly idle: ChildProcess[] = [];
  private running = 0;

  /** `program` is the built worker, which tests that run from sources have to name. */
  constructor(
    private readonly size: number,
    private readonly program = join(__dirname, 'worker.js'),
  ) {}

  /** Runs a simulation once a process is idle. */
  run(order: RunOrder): Promise<RunResult> {
    return new Promise((resolve) => {
      this.pending.push({ order, resolve });
      this.startNext();
    });
  }

  /** Ends the idle processes. */
  close(): void {
    for (const worker of this.idle.splice(0)) worker.disconnect();
  }

  private startNext(): void {
    const next = this.running < this.size ? this.pending.shift() : undefined;
    if (next === undefined) return;
    this.running += 1;
    const worker = this.idle.pop() ?? fork(this.program, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
    runOne(worker, next.order, (result) => {
      this.running -= 1;
      if (worker.connected) this.idle.push(worker);
      this.startNext();
      next.resolve(result);
    });
  }
}

function runOne(worker: ChildProcess, order: RunOrder, resolve: (result: RunResult) => void): void {
  let output = '';
  const collect = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-MAX_OUTPUT);
  };
  const finish = (result: RunResult): void => {
    worker.stderr?.off('data', collect);
    worker.off('message', onMessage);
    worker.off('close', onClose);
    resolve(result);
  };
  // Only our own workers send messages here.
  const onMessage = (result: unknown): void => finish(result as RunResult);
  const onClose = (): void => finish(crashed(order.seed, output));
  worker.stderr?.on('data', collect);
  worker.on('message', onMessage);
  worker.on('close', onClose);
  worker.send(order);
}

function crashed(seed: number, output: string): RunResult {
  const what = `a launcher ended its process: ${output.trim()}`;
  return { seed, violation: { rule: 'X', at: 0, what }, lastSteps: [], steps: 0, virtualMs: 0 };
}
