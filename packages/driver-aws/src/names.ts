/**
 * Gives instances of shared launches their own names. A call names one instance, so it would cost as many calls as
 * nodes to do so at once; a slow rate leaves the calls of a burst to launches and deletions. In a burst, some instances
 * wait for an hour, so that a node that ends earlier costs less than one call.
 */

import { isDriverError, sleep, type Call, type Clock } from '@nodepool/core';
import type { Ec2 } from './client/ec2.js';

/** Interval between calls (ms). */
const INTERVAL_MS = 2000;
/** Number of waiting instances from which a launch is part of a burst. */
const BURST = 20;
/** In a burst, one of so many instances is named late. */
const LATE_EACH = 4;
/** Time until the name of such an instance (ms). */
const LATE_MS = 3_600_000;

interface LateTurn {
  readonly hostname: string;
  /** `Clock.monotonic` time from which the instance may be named (ms). */
  readonly from: number;
}

export class InstanceNames {
  /** Host name by instance id, in the order of their turns. */
  private readonly waiting = new Map<string, string>();
  /** By instance id, in the order of their times. */
  private readonly late = new Map<string, LateTurn>();
  private arrivals = 0;
  private isRunning = false;

  constructor(
    private readonly ec2: Ec2,
    private readonly clock: Clock,
    private readonly makeCall: () => Call,
  ) {}

  /** Sets the tag `Name` later. */
  add(instanceId: string, hostname: string): void {
    this.arrivals += 1;
    const isLate = this.waiting.size >= BURST && this.arrivals % LATE_EACH === 0;
    if (isLate) this.late.set(instanceId, { hostname, from: this.clock.monotonic() + LATE_MS });
    else this.waiting.set(instanceId, hostname);
    if (!this.isRunning) void this.run();
  }

  /** Leaves out an instance that is being deleted. */
  forget(instanceId: string): void {
    this.waiting.delete(instanceId);
    this.late.delete(instanceId);
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.waiting.size + this.late.size > 0) {
      const { signal } = this.makeCall();
      const isStopped = await sleep(this.clock, INTERVAL_MS, signal).then(
        () => false,
        () => true,
      );
      if (isStopped) {
        this.waiting.clear();
        this.late.clear();
      }
      this.moveDue();
      await this.nameNext(this.makeCall());
    }
    this.isRunning = false;
  }

  private moveDue(): void {
    const now = this.clock.monotonic();
    for (const [id, { hostname, from }] of this.late) {
      if (from > now) return;
      this.late.delete(id);
      this.waiting.set(id, hostname);
    }
  }

  /** A failure leaves the name of the label, which identifies nothing. */
  private async nameNext(call: Call): Promise<void> {
    const [next] = this.waiting;
    if (next === undefined) return;
    const [id, Name] = next;
    this.waiting.delete(id);
    try {
      await this.ec2.createTags([id], { Name }, call, 1);
    } catch (error) {
      if (call.signal.aborted || (isDriverError(error) && error.code === 'not-found')) return;
      call.log.info('Could not set the name of an instance', { external_id: id, name: Name, error });
    }
  }
}
