/** Runs seeds in separate processes, so that a launcher that ends its process affects only one seed. */

import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { RunResult } from './simulate.js';

export interface SeedRange {
  readonly first: number;
  readonly count: number;
  readonly workers: number;
  readonly keepGoing: boolean;
  /** Rules to ignore. */
  readonly without: readonly string[];
}

/** A message to a worker. */
export interface SeedOrder {
  readonly seed: number;
  readonly without: readonly string[];
}

/** Maximum length of a crashed worker's output that is kept (characters). */
const LAST_WORDS = 2000;

/** Calls `onResult` for each completed seed. Resolves after all seeds or after the first failure. */
export async function runSeeds(range: SeedRange, onResult: (result: RunResult) => void): Promise<void> {
  let next = range.first;
  let over = false;
  const take = (): number | undefined => (over || next >= range.first + range.count ? undefined : next++);
  const report = (result: RunResult): void => {
    if (over) return;
    onResult(result);
    over = result.violation !== undefined && !range.keepGoing;
  };
  const workers = Math.min(range.workers, range.count);
  await Promise.all(Array.from({ length: workers }, () => work(range.without, take, report)));
}

/** Runs workers one after another until no seeds are left. */
async function work(
  without: readonly string[],
  take: () => number | undefined,
  report: (result: RunResult) => void,
): Promise<void> {
  let worker: ChildProcess | undefined;
  for (let seed = take(); seed !== undefined; seed = take()) {
    worker ??= fork(join(__dirname, 'worker.js'), { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
    const result = await runOne(worker, { seed, without });
    if (!worker.connected) worker = undefined;
    report(result);
  }
  worker?.disconnect();
}

function runOne(worker: ChildProcess, order: SeedOrder): Promise<RunResult> {
  return new Promise((resolve) => {
    let said = '';
    const hear = (words: Buffer): void => {
      said = (said + words.toString()).slice(-LAST_WORDS);
    };
    const finish = (result: RunResult): void => {
      worker.stderr?.off('data', hear);
      worker.off('message', onMessage);
      worker.off('close', onClose);
      resolve(result);
    };
    // Only our own workers send messages here.
    const onMessage = (result: unknown): void => finish(result as RunResult);
    const onClose = (): void => finish(crashed(order.seed, said));
    worker.stderr?.on('data', hear);
    worker.on('message', onMessage);
    worker.on('close', onClose);
    worker.send(order);
  });
}

function crashed(seed: number, said: string): RunResult {
  const what = `a launcher ended its process: ${said.trim()}`;
  return { seed, violation: { rule: 'X', at: 0, what }, lastSteps: [], steps: 0, virtualMs: 0 };
}
