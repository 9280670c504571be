/**
 * Loaded into the launcher with `--require`: adds the delay of its event loop, a line of JSON in milliseconds, to the file
 * that `NODEPOOL_EVENT_LOOP_FILE` names, when the process ends and on every SIGWINCH, which begins a new phase.
 */

import { appendFileSync, openSync, readSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setInterval } from 'node:timers';

const NANOSECONDS = 1e6;
/** A finer one would wake the idle process so often that the measurement is most of what it measures. */
const RESOLUTION_MS = 20;

const file = process.env['NODEPOOL_EVENT_LOOP_FILE'];
if (file !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const endPhase = (): void => {
    // The histogram measures the distance of two ticks of a timer; what is above the timer's period is delay.
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
 * Watches the processor time of the main thread (Linux, `schedstat` of proc(5)). Returns a function that returns the most
 * milliseconds between two ticks of a timer since its last call: the longest turn as an idle machine would show it.
 */
function watchProcessorTime(): () => number {
  const stat = openSync('/proc/self/schedstat', 'r');
  const buffer = Buffer.alloc(128);
  const read = (): number => parseInt(buffer.toString('latin1', 0, readSync(stat, buffer, 0, buffer.length, 0)), 10);
  let last = read();
  let most = 0;
  const tick = (): void => {
    const now = read();
    most = Math.max(most, now - last);
    last = now;
  };
  setInterval(tick, RESOLUTION_MS).unref();
  return () => {
    tick();
    const result = most / NANOSECONDS;
    most = 0;
    return result;
  };
}
