/** Watches if the labels of a pool can be served, so that operators know of a missing image before a request fails. */

import type { Clock, Logger, Metrics, Timer } from '@nodepool/core';
import type { LabelActivity } from '@nodepool/status';
import { UNREADY_LABELS } from '../metrics/launcher-metrics.js';
import { ReportedGauge } from '@nodepool/daemon';

/** Interval (ms) of the checks; drivers answer from what they have looked up, and look up again in the background. */
const INTERVAL_MS = 30_000;

export interface ReadinessSources {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly provider: string;
  readonly pool: string;
  readonly labels: () => readonly LabelActivity[];
  /** Called with the reasons by label after every check, without those of the provider. */
  readonly onChange: (unready: ReadonlyMap<string, string>) => void;
}

export class LabelReadiness {
  private known: ReadonlyMap<string, string> = new Map();
  private readonly gauge: ReportedGauge<'provider' | 'pool' | 'label'>;
  private timer: Timer | undefined;

  constructor(private readonly sources: ReadinessSources) {
    this.gauge = new ReportedGauge(sources.metrics, UNREADY_LABELS);
  }

  /** Checks the labels now, and repeats that until `stop`. */
  start(): void {
    this.check();
    this.timer = this.sources.clock.schedule(INTERVAL_MS, () => this.start(), { background: true });
  }

  stop(): void {
    this.timer?.cancel();
    this.gauge.withdraw();
  }

  private check(): void {
    const { provider, pool, log, labels, onChange } = this.sources;
    const unready = new Map<string, string>();
    const found = new Map<string, string>();
    for (const { label, obstacle, cause } of labels()) {
      // Logs, metrics and problems of the provider say that it fails.
      if (obstacle === undefined || cause === 'provider') continue;
      unready.set(label, obstacle);
      this.gauge.set({ provider, pool, label }, 1);
      // Builders and the status page report disk images.
      if (cause !== 'image') found.set(label, obstacle);
    }
    this.gauge.end();
    for (const [label, reason] of found) {
      if (!this.known.has(label))
        log.warn('The pool cannot serve a label; requests for it would fail', { label, reason });
    }
    for (const label of this.known.keys()) {
      if (!found.has(label)) log.warn('The pool can serve the label again', { label });
    }
    this.known = found;
    onChange(unready);
  }
}
