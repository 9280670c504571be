/**
 * Loaded into the launcher with `--require`, hence also into its worker threads, where it does nothing. Appends the
 * event loop delays as a line of JSON in milliseconds to the file in `NODEPOOL_EVENT_LOOP_FILE`, at exit and on every
 * SIGWINCH, which starts a new phase.
 */

import { appendFileSync, openSync, readSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setInterval } from 'node:timers';
import { isMainThread } from 'node:worker_threads';

const NANOSECONDS = 1e6;
/** Timer period (ms). A shorter one would wake an idle process so often that it dominates the measurement. */
const RESOLUTION_MS = 20;

const file = process.env['NODEPOOL_EVENT_LOOP_FILE'];
if (file !== undefined && isMainThread) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const endPhase = (): void => {
    // The histogram contains intervals between timer ticks; the delay is the excess over the timer's period.
    const delay = (nanoseconds: number): number => Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS);
    appendFileSync(
      file,
      `${JSON.stringify({ p99: delay(histogram.percentile(99)), max: delay(histogram.max), busiest: busiest() })}\n`,
    );
    histogram.reset();
  };
  const busiest = watchProcessorTime();
  histogram.enable();
  process.on('SIGWINCH', endPhase);
  process.once('exit', endPhase);
}

/**
 * Measures the processor time of the main thread (Linux, `schedstat` of proc(5)). Returns a function that returns the
 * maximum between two timer ticks since its last call (ms): the longest turn on an otherwise idle machine.
 */
function watchProcessorTime(): () => number {
  const stat = openSync('/proc/self/schedstat', 'r');
  const buffer = Buffer.alloc(128);
  const read = (): number => parseInt(buffer.toString('latin1', 0, readSync(stat, buffer, 0, buffer.length, 0)), 10);
  let last = read();
  let maximum = 0;
  const tick = (): void => {
    const now = read();
    maximum = Math.max(maximum, now - last);
    last = now;
  };
  setInterval(tick, RESOLUTION_MS).unref();
  return () => {
    tick();
    const result = maximum / NANOSECONDS;
    maximum = 0;
    return result;
  };
}
