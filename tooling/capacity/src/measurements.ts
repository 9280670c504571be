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
export async function measureAll(
  orders: readonly MeasurementOrder[],
  jobs: number,
  onSummary: (order: MeasurementOrder, summary: Summary) => void,
): Promise<readonly Summary[]> {
  const summaries: Summary[] = [];
  const pending = orders.entries();
  const work = async (): Promise<void> => {
    for (const [index, order] of pending) {
      const summary = await measure(order);
      onSummary(order, summary);
      summaries[index] = summary;
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return summaries;
}

function measure(order: MeasurementOrder): Promise<Summary> {
  return new Promise((resolve, reject) => {
    const worker = fork(join(__dirname, 'worker.js'), { serialization: 'advanced' });
    // Only `worker.ts` sends messages here.
    worker.once('message', (summary) => resolve(summary as Summary));
    worker.once('close', (code) => reject(new Error(`${order.what}: the run ended with exit status ${code ?? '?'}`)));
    worker.send(order);
  });
}
