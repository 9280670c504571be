/** Process of one measurement of `measurements.ts`. */

import { DISTURBANCES } from './disturbances.js';
import { terminalLog } from './log.js';
import type { MeasurementOrder } from './measurements.js';
import { summarize } from './report.js';
import { run } from './run.js';

process.once('message', ({ periods, scenario, log, ...order }: MeasurementOrder) => {
  const disturbance = DISTURBANCES.find(({ name }) => name === scenario);
  const { calmMs, disturbedMs } = periods;
  run({ ...order, ...periods, disturbance, log: log ? terminalLog : undefined }).then(
    (result) => process.send?.(summarize(result, calmMs, calmMs + disturbedMs), () => process.exit()),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
      process.exit(1);
    },
  );
});
