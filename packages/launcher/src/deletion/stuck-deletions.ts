/**
 * Notices deletions that do not end: the cloud refuses them, or has accepted them and still has the instances. The log
 * gets a warning when the first deletion of a provider is stuck, and another one when none is any more.
 */

import type { Clock, Logger, Timer } from '@nodepool/core';
import { STUCK_DELETION_MS } from '@nodepool/status';

/** Time that a deletion of an earlier process gets to continue (ms). */
const RESUMED_MS = 60_000;
const UNKNOWN = 'the cloud has answered nothing that explains it';

interface Deletion {
  readonly since: number;
  readonly timer: Timer;
  reason: string;
  /** True if the cloud shows that it has accepted the deletion. */
  isAccepted: boolean;
  isStuck: boolean;
}

export class StuckDeletions {
  private readonly underway = new Map<string, Deletion>();
  /** Number of stuck deletions since the first warning. */
  private count = 0;

  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
    /** Called once for each stuck deletion that the cloud has accepted. */
    private readonly onUnended: (nodeId: string, reason: string) => void,
  ) {}

  /** Records the begin of a deletion, or its continuation after `ageMs`. */
  begin(id: string, ageMs: number): void {
    this.underway.get(id)?.timer.cancel();
    const timer = this.clock.schedule(Math.max(STUCK_DELETION_MS - ageMs, RESUMED_MS), () => this.check(id), {
      background: true,
    });
    const since = this.clock.monotonic() - ageMs;
    this.underway.set(id, { since, timer, reason: UNKNOWN, isAccepted: false, isStuck: false });
  }

  /** Records the last answer of the cloud. `isAccepted` is true if it shows that the deletion is in progress. */
  answered(id: string, reason: string, isAccepted: boolean): void {
    const deletion = this.underway.get(id);
    if (deletion === undefined) return;
    const wasAccepted = deletion.isAccepted;
    deletion.reason = reason;
    deletion.isAccepted ||= isAccepted;
    if (deletion.isStuck && isAccepted && !wasAccepted) this.onUnended(id, reason);
  }

  /** Records the end of a deletion, or of this launcher's part in it. */
  end(id: string): void {
    const deletion = this.underway.get(id);
    if (deletion === undefined) return;
    deletion.timer.cancel();
    this.underway.delete(id);
    if (!deletion.isStuck || [...this.underway.values()].some(({ isStuck }) => isStuck)) return;
    this.log.warn('No deletion is stuck any more', { nodes: this.count, seconds: this.secondsSince(deletion) });
    this.count = 0;
  }

  stop(): void {
    for (const { timer } of this.underway.values()) timer.cancel();
    this.underway.clear();
  }

  private check(id: string): void {
    const deletion = this.underway.get(id);
    if (deletion === undefined) return;
    deletion.isStuck = true;
    this.count += 1;
    const { reason, isAccepted } = deletion;
    const fields = { node_id: id, seconds: this.secondsSince(deletion), reason };
    // The problems on the status page list the others.
    this.log[this.count === 1 ? 'warn' : 'info']('The deletion of a node is stuck', fields);
    if (isAccepted) this.onUnended(id, reason);
  }

  private secondsSince({ since }: Deletion): number {
    return Math.round((this.clock.monotonic() - since) / 1000);
  }
}
