/** Measures the timer lateness of this process, which delays all other work in it by the same time. */

import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';

/** Sampling interval, milliseconds. */
const RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;

/** Lateness of timers since the last `reset`, seconds. */
export interface EventLoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Measures how late timers are. The cost is a wake-up every 20 ms, outside of JavaScript. */
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
