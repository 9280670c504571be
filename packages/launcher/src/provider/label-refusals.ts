/**
 * Labels that the cloud refused to launch, by availability zone. A refusal takes the label out of service for a time
 * that doubles each time in a row; then the launch of the next request probes it.
 */

import type { Clock, Timer } from '@nodepool/core';

/** First and longest time out of service, milliseconds. */
const OUT_OF_SERVICE_MS = { first: 60_000, longest: 3_600_000 } as const;

interface Refusal {
  readonly label: string;
  readonly zone: string;
  readonly reason: string;
  readonly lastsMs: number;
  /** Undefined once it is over; the next launch is a probe then. */
  timer: Timer | undefined;
}

export class LabelRefusals {
  private readonly refusals = new Map<string, Refusal>();

  constructor(
    private readonly clock: Clock,
    signal: AbortSignal,
    /** Called when a label is served again. */
    private readonly onReady: () => void,
  ) {
    signal.addEventListener(
      'abort',
      () => {
        for (const { timer } of this.refusals.values()) timer?.cancel();
      },
      { once: true },
    );
  }

  /** Takes the label out of service in the zone, or everywhere without a zone. Returns the time in milliseconds. */
  refused(label: string, zone: string | undefined, reason: string): number {
    const key = keyOf(label, zone);
    const before = this.refusals.get(key);
    // Launches that ran at the same time are refused together.
    if (before?.timer !== undefined) return before.lastsMs;
    const lastsMs = Math.min((before?.lastsMs ?? OUT_OF_SERVICE_MS.first / 2) * 2, OUT_OF_SERVICE_MS.longest);
    const refusal: Refusal = { label, zone: zone ?? '', reason, lastsMs, timer: undefined };
    refusal.timer = this.clock.schedule(lastsMs, () => {
      refusal.timer = undefined;
      this.onReady();
    });
    this.refusals.set(key, refusal);
    return lastsMs;
  }

  /** Ends the refusal, as a launch has succeeded. */
  launched(label: string, zone: string | undefined): void {
    const key = keyOf(label, zone);
    this.refusals.get(key)?.timer?.cancel();
    this.refusals.delete(key);
  }

  /** Returns the reason why one of the labels is out of service in the zone; undefined if none is. */
  reason(labels: readonly string[], zone: string | undefined): string | undefined {
    for (const label of labels) {
      const refusal = this.refusals.get(keyOf(label, zone));
      if (refusal?.timer === undefined) continue;
      const where = zone === undefined ? '' : ` in zone ${zone}`;
      return `label ${label} cannot be served${where}: ${refusal.reason}`;
    }
    return undefined;
  }
}

function keyOf(label: string, zone: string | undefined): string {
  return JSON.stringify([label, zone ?? '']);
}
