/** Runs measurements in processes of their own, several at a time. */

import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { CapacityOptions } from '@nodepool/launcher';
import type { Summary } from './report.js';
import type { Periods } from './run.js';

/** A run to measure, as its process receives it. */
export interface MeasurementOrder {
  /** Name for messages. */
  readonly what: string;
  readonly seed: number;
  readonly regions: number;
  readonly scale: number;
  readonly periods: Periods;
  /** Name of the disturbance; undefined without one. */
  readonly scenario: string | undefined;
  readonly capacity: CapacityOptions | undefined;
  /** The process prints warnings and errors of the launcher. */
  readonly log: boolean;
}

/** Resolves with the summaries in the order of `orders`. `jobs` is the maximum number of concurrent processes. */
export function measureAll(
  orders: readonly MeasurementOrder[],
  jobs: number,
  onSummary: (order: MeasurementOrder, summary: Summary) => void,
): Promise<readonly Summary[]> {
  return inProcesses(join(__dirname, 'worker.js'), orders, jobs, onSummary);
}

/**
 * Sends each order to a process of its own that runs the program, and resolves with the results in the order of
 * `orders`. The program sends one message, of type `R`.
 */
export async function inProcesses<O extends { readonly what: string }, R>(
  program: string,
  orders: readonly O[],
  jobs: number,
  onResult: (order: O, result: R) => void,
): Promise<readonly R[]> {
  const results: R[] = [];
  const pending = orders.entries();
  const work = async (): Promise<void> => {
    for (const [index, order] of pending) {
      const result = await measure<R>(program, order);
      onResult(order, result);
      results[index] = result;
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return results;
}

function measure<R>(program: string, order: { readonly what: string }): Promise<R> {
  return new Promise((resolve, reject) => {
    const worker = fork(program, { serialization: 'advanced' });
    // Only the program sends messages here.
    worker.once('message', (result) => resolve(result as R));
    worker.once('close', (code) => reject(new Error(`${order.what}: the run ended with exit status ${code ?? '?'}`)));
    worker.send(order);
  });
}
