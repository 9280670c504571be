/**
 * One timer that measures the event loop: how late it is delays all other work of this process by the same time. It
 * also shows another thread that the loop turns, and when it last did.
 */

import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks';

/**
 * Sampling interval (ms). The quantiles do not depend on it; a delay shorter than it may be missed. Each wake-up of an
 * idle process takes 0.2 ms of processor time.
 */
const BEAT_MS = 250;
const NANOSECONDS_PER_MS = 1e6;
const NANOSECONDS = 1e9;

/** Lateness of timers since the last `reset`, seconds. */
export interface EventLoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export class EventLoopMonitor {
  /** The time of the last sample (`process.hrtime.bigint`, the same clock in each thread), 0 before `start`. */
  readonly lastBeat = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT));
  /** Time (ms) between two samples. */
  readonly beatMs = BEAT_MS;
  private readonly lateness: RecordableHistogram = createHistogram();
  private timer: NodeJS.Timeout | undefined;
  private sampledAt = 0;

  /** `onBeat` is called after each sample. */
  constructor(private readonly onBeat: () => void = () => undefined) {}

  start(): void {
    this.beat();
    // eslint-disable-next-line no-restricted-globals -- it measures the real event loop, whatever clock the program has
    this.timer = setInterval(() => {
      const late = performance.now() - this.sampledAt - BEAT_MS;
      this.lateness.record(Math.max(1, Math.round(late * NANOSECONDS_PER_MS)));
      this.beat();
      this.onBeat();
    }, BEAT_MS);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Returns the delay since `reset` or `start`; zeros without a sample. */
  read(): EventLoopDelay {
    const { lateness } = this;
    return {
      p50: lateness.percentile(50) / NANOSECONDS,
      p99: lateness.percentile(99) / NANOSECONDS,
      max: lateness.max / NANOSECONDS,
    };
  }

  reset(): void {
    this.lateness.reset();
  }

  private beat(): void {
    this.sampledAt = performance.now();
    Atomics.store(this.lastBeat, 0, process.hrtime.bigint());
  }
}
