/** The gauges of one scale set. */

import { CAPACITY, JOBS, LAST_ANSWER, OLDEST_WAIT, RUNNERS, SESSION } from '../metrics.js';
import type { BridgeContext } from '../context.js';
import type { Runner, RunnerState } from '../runners/runner.js';
import type { JobBook } from './jobs.js';
import type { Planner } from './planner.js';
import type { RunnerSet } from './runner-set.js';

const STATES: readonly RunnerState[] = ['requested', 'starting', 'online', 'busy', 'ending'];
const JOB_STATES = ['available', 'assigned', 'running'] as const;

/** The state of a term that the gauges show. */
interface TermState {
  readonly planner: Pick<Planner, 'statistics'>;
  readonly runners: Pick<RunnerSet, 'values'>;
  readonly problem: string | undefined;
  /** Milliseconds since the epoch. */
  readonly lastAnswer: number | undefined;
  readonly jobs: Pick<JobBook, 'oldestWaitMs'>;
  readonly capacityInForce: number;
}

export class TermReport {
  private readonly labels: { readonly installation: string; readonly scale_set: string };

  constructor(
    private readonly context: Pick<BridgeContext, 'metrics'>,
    installation: string,
    scaleSet: string,
  ) {
    this.labels = { installation, scale_set: scaleSet };
  }

  /** Returns the number of runners by state, without states that have none. */
  counts(runners: Iterable<Runner>): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { state } of runners) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  }

  update({ planner: { statistics }, runners, problem, lastAnswer, jobs, capacityInForce }: TermState): void {
    const { metrics } = this.context;
    const { labels } = this;
    for (const state of JOB_STATES) metrics.set(JOBS, { ...labels, state }, statistics?.[state] ?? 0);
    const counts = this.counts(runners.values());
    for (const state of STATES) metrics.set(RUNNERS, { ...labels, state }, counts[state] ?? 0);
    metrics.set(SESSION, labels, problem === undefined && lastAnswer !== undefined ? 1 : 0);
    metrics.set(LAST_ANSWER, labels, lastAnswer === undefined ? undefined : lastAnswer / 1000);
    metrics.set(CAPACITY, labels, capacityInForce);
    metrics.set(OLDEST_WAIT, labels, jobs.oldestWaitMs() / 1000);
  }

  /** Removes the gauges, which the next bridge reports. */
  end(): void {
    const { metrics } = this.context;
    const { labels } = this;
    for (const state of JOB_STATES) metrics.set(JOBS, { ...labels, state }, undefined);
    for (const state of STATES) metrics.set(RUNNERS, { ...labels, state }, undefined);
    for (const gauge of [SESSION, LAST_ANSWER, CAPACITY, OLDEST_WAIT]) metrics.set(gauge, labels, undefined);
  }
}
