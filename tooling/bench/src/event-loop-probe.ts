/**
 * Loaded into the launcher with `--require`: adds the delay of its event loop, a line of JSON in milliseconds, to the file
 * that `NODEPOOL_EVENT_LOOP_FILE` names, when the process ends and on every SIGWINCH, which begins a new phase.
 */

import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const NANOSECONDS = 1e6;
/** A finer one would wake the idle process so often that the measurement is most of what it measures. */
const RESOLUTION_MS = 20;

const file = process.env['NODEPOOL_EVENT_LOOP_FILE'];
if (file !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const endPhase = (): void => {
    // The histogram measures the distance of two ticks of a timer; what is above the timer's period is delay.
    const delay = (nanoseconds: number): number => Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS);
    appendFileSync(file, `${JSON.stringify({ p99: delay(histogram.percentile(99)), max: delay(histogram.max) })}\n`);
    histogram.reset();
  };
  histogram.enable();
  process.on('SIGWINCH', endPhase);
  process.once('exit', endPhase);
}
