/**
 * Loaded into the launcher with `--require`, hence also into its worker threads, where it does nothing. Appends the
 * event loop delays as a line of JSON in milliseconds to the file in `NODEPOOL_EVENT_LOOP_FILE`, at exit and on every
 * SIGWINCH, which starts a new phase.
 */

import { appendFileSync, openSync, readSync } from 'node:fs';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
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
    const delays = { p99: delay(histogram.percentile(99)), max: delay(histogram.max), ...ownDelays() };
    appendFileSync(file, `${JSON.stringify(delays)}\n`);
    histogram.reset();
  };
  const ownDelays = watchMainThread();
  histogram.enable();
  process.on('SIGWINCH', endPhase);
  process.once('exit', endPhase);
}

interface OwnDelays {
  readonly ownP99: number;
  readonly ownMax: number;
  readonly busiest: number;
}

/**
 * Watches the processor time of the main thread, and its waits for a processor that other threads and programs use
 * (Linux, `schedstat` of proc(5)). Returns a function that returns the delays of timer ticks without these waits, and
 * the maximum of the processor time between two ticks, since its last call (ms).
 */
function watchMainThread(): () => OwnDelays {
  const stat = openSync('/proc/self/schedstat', 'r');
  const buffer = Buffer.alloc(128);
  const read = (): { readonly used: number; readonly waited: number; readonly at: number } => {
    const text = buffer.toString('latin1', 0, readSync(stat, buffer, 0, buffer.length, 0));
    const [used = NaN, waited = NaN] = text.split(' ').map((nanoseconds) => Number(nanoseconds) / NANOSECONDS);
    return { used, waited, at: performance.now() };
  };
  let last = read();
  let delays: number[] = [];
  let busiest = 0;
  const tick = (): void => {
    const now = read();
    delays.push(Math.max(0, now.at - last.at - RESOLUTION_MS - (now.waited - last.waited)));
    busiest = Math.max(busiest, now.used - last.used);
    last = now;
  };
  setInterval(tick, RESOLUTION_MS).unref();
  return () => {
    tick();
    const sorted = delays.sort((a, b) => a - b);
    const ownP99 = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
    const result = { ownP99, ownMax: sorted.at(-1) ?? 0, busiest };
    delays = [];
    busiest = 0;
    return result;
  };
}
