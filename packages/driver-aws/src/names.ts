/**
 * Gives instances of shared launches their own names. A call names one instance, so it would cost as many calls as
 * nodes to do so at once; a slow rate leaves the calls of a burst to launches and deletions.
 */

import { isDriverError, sleep, type Call, type Clock } from '@nodepool/core';
import type { Ec2 } from './client/ec2.js';

/** Interval between calls (ms). */
const INTERVAL_MS = 2000;

export class InstanceNames {
  /** Host name by instance id, in the order of their turns. */
  private readonly waiting = new Map<string, string>();
  private isRunning = false;

  constructor(
    private readonly ec2: Ec2,
    private readonly clock: Clock,
    private readonly makeCall: () => Call,
  ) {}

  /** Sets the tag `Name` later. */
  add(instanceId: string, hostname: string): void {
    this.waiting.set(instanceId, hostname);
    if (!this.isRunning) void this.run();
  }

  /** Leaves out an instance that is being deleted. */
  forget(instanceId: string): void {
    this.waiting.delete(instanceId);
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    while (this.waiting.size > 0) {
      const { signal } = this.makeCall();
      const isStopped = await sleep(this.clock, INTERVAL_MS, signal).then(
        () => false,
        () => true,
      );
      if (isStopped) this.waiting.clear();
      await this.nameNext(this.makeCall());
    }
    this.isRunning = false;
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
