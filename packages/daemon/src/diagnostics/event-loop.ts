/** Measures the timer lateness of this process, which delays all other work in it by the same time. */

import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';

/**
 * Sampling interval, milliseconds. The quantiles do not depend on it; a delay shorter than it may be missed. Intervals
 * of 20 ms made half of the processor time of an idle launcher.
 */
const RESOLUTION_MS = 100;
const NANOSECONDS = 1e9;

/** Lateness of timers since the last `reset`, seconds. */
export interface EventLoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Measures how late timers are. The cost is ten wake-ups per second, outside of JavaScript. */
export class EventLoopMonitor {
  private readonly histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  start(): void {
    this.histogram.enable();
  }

  stop(): void {
    this.histogram.disable();
  }

  /** Returns the delay since `reset` or `start`. */
  read(): EventLoopDelay {
    return {
      p50: seconds(this.histogram.percentile(50)),
      p99: seconds(this.histogram.percentile(99)),
      max: seconds(this.histogram.max),
    };
  }

  reset(): void {
    this.histogram.reset();
  }
}

/** Converts the histogram's time between two ticks, in nanoseconds, to seconds of lateness; an empty histogram is 0. */
function seconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS / 1000);
}
