/**
 * Makes V8 return the memory of the last burst to the system while the process is idle, and limits its space for new
 * objects in a burst. Node.js 24 otherwise keeps the memory: 230 MiB in place of 60 MiB in a process that releases the
 * records of a burst and then works for 1 % of the time.
 */

import { performance, type EventLoopUtilization } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Calls of `beat` from one look at the load to the next: one second. */
const BEATS = 4;
/** Share of the time that the event loop works, below which the process counts as idle. */
const IDLE_BELOW = 0.1;
/**
 * Flags of V8 while the process is idle, and otherwise. With the first one, V8 looks for idle moments to return memory,
 * and every collection returns as much as it can. The second one limits the garbage before the next full collection, in
 * percent of the live objects. V8's own choice (0) for an idle process is about 10 percent, which one list of 10,000
 * instances exceeds.
 */
const FLAGS = {
  idle: ['--optimize-for-size', '--heap-growing-percent=30'],
  busy: ['--no-optimize-for-size', '--heap-growing-percent=0'],
} as const;

/**
 * Size (bytes) from which V8's space for new objects does not grow. Without a limit, Node.js 24 lets it grow to 128 MiB,
 * which saves a launcher no processor time; earlier versions have this limit.
 */
const NEW_SPACE_BYTES = 32 * 1024 * 1024;
const GROWING = '--semi-space-growth-factor=2';
const NOT_GROWING = '--semi-space-growth-factor=1';

export interface HeapPolicyOptions {
  /** Sets a flag of V8. Default: that of this process. */
  readonly setFlag?: (flag: string) => void;
  /** Returns the share of time in which the event loop worked since the last call. Default: that of this process. */
  readonly utilization?: () => number;
  /** Returns the size of the space for new objects (bytes). Default: that of this process. */
  readonly newSpaceBytes?: () => number;
}

export class HeapPolicy {
  private beats = 0;
  private isIdle = false;
  private isGrowing = true;
  private readonly setFlag: (flag: string) => void;
  private readonly utilization: () => number;
  private readonly newSpaceBytes: () => number;

  constructor(options: HeapPolicyOptions = {}) {
    this.setFlag = options.setFlag ?? setFlagsFromString;
    this.utilization = options.utilization ?? eventLoopUtilization();
    this.newSpaceBytes = options.newSpaceBytes ?? newSpaceBytes;
  }

  /** Called at each sample of the event loop. */
  beat(): void {
    this.beats += 1;
    if (!this.isIdle) this.limitNewSpace();
    if (this.beats % BEATS !== 0) return;
    const isIdle = this.utilization() < IDLE_BELOW;
    if (isIdle !== this.isIdle) for (const flag of FLAGS[isIdle ? 'idle' : 'busy']) this.setFlag(flag);
    this.isIdle = isIdle;
  }

  /** The space shrinks while the process is idle, and may grow again after that. */
  private limitNewSpace(): void {
    const isGrowing = this.newSpaceBytes() < NEW_SPACE_BYTES;
    if (isGrowing !== this.isGrowing) this.setFlag(isGrowing ? GROWING : NOT_GROWING);
    this.isGrowing = isGrowing;
  }
}

function newSpaceBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
}

function eventLoopUtilization(): () => number {
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
