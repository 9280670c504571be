/** Plans the runners of a scale set from GitHub's statistics, the settings, and the requests that failed. */

import { backOffMs, type Clock, type RandomSource } from '@nodepool/core';
import type { Statistics } from '../github/documents.js';
import type { Runner } from '../runners/runner.js';
import type { ScaleSetSettings } from '../settings/settings.js';
import { planScale, type ScalePlan } from './scaling.js';
import { SettlingRunners } from './settling.js';

/** Wait after a failed request before the next one. */
const REQUEST_BACK_OFF = { firstMs: 2000, longestMs: 60_000 };
/** Time after which a runner that gets no job, although jobs wait, is replaced (ms). */
const NO_JOB_MS = 180_000;

export class Planner {
  readonly settling = new SettlingRunners();
  statistics: Statistics | undefined;
  /** The reason of the last failed request; undefined after a request that was fulfilled. */
  requestProblem: string | undefined;
  /** Failed requests in a row, and the end of the wait after them. */
  private failures = 0;
  private notBefore = -Infinity;

  constructor(private readonly options: { readonly clock: Clock; readonly random: RandomSource }) {}

  /** True during the wait after a failed request. */
  get isPaused(): boolean {
    return this.notBefore > this.options.clock.monotonic();
  }

  /** Returns the changes that are needed now, and the time until the next look (`againMs`). */
  plan(settings: ScaleSetSettings, runners: readonly Runner[]): ScalePlan {
    const now = this.options.clock.monotonic();
    const { minRunners: min, maxRunners: max, idleTimeoutMs } = settings;
    const settling = this.settling.count(now);
    const assigned = Math.max(0, (this.statistics?.assigned ?? 0) - settling.runners);
    const plan = planScale({ assigned, min, max, runners, idleTimeoutMs, now });
    if (plan.create > 0 && this.isPaused) return { ...plan, create: 0, againMs: this.notBefore - now };
    const againMs = Math.min(plan.againMs ?? Infinity, settling.nextAt - now);
    return { ...plan, againMs: againMs === Infinity ? undefined : againMs };
  }

  /** Notes the end of a runner. */
  ended({ name, ending, isDone, isBusy, lease }: Runner): void {
    const { clock, random } = this.options;
    const { reason, detail } = ending ?? {};
    if (!isDone && (reason === 'job-done' || isBusy)) {
      this.settling.add(name, clock.monotonic(), reason !== 'job-done');
    }
    if (reason === 'request-failed' || reason === 'node-unusable') {
      this.failures += 1;
      this.notBefore = clock.monotonic() + backOffMs(this.failures, undefined, random, REQUEST_BACK_OFF);
      this.requestProblem = detail;
    } else if (lease !== undefined) {
      this.failures = 0;
      this.requestProblem = undefined;
    }
  }

  /** Returns the runners that get no job although jobs wait. GitHub refuses to delete one that has a job. */
  withoutJob(runners: Iterable<Runner>): readonly string[] {
    const { assigned = 0, running = 0 } = this.statistics ?? {};
    if (assigned <= running) return [];
    const now = this.options.clock.monotonic();
    return [...runners]
      .filter(({ state, onlineAt = now }) => state === 'online' && now - onlineAt >= NO_JOB_MS)
      .map(({ name }) => name);
  }
}
