/** Times of the phases of jobs and runners by repository: as metrics, and as a summary for the status page. */

import type { Metrics } from '@nodepool/core';
import type { GithubJob, PhaseTimes, RunnerPhase } from '@nodepool/store/github';
import { JOB_PHASE, RUNNER_PHASE } from '../metrics.js';

/** Times of a phase of one repository that are kept; the summary is about the last ones. */
const MAX_TIMES = 200;
/** Repositories that have their own values of the metrics; further ones share one. */
const MAX_REPOSITORIES = 100;
const UNKNOWN = 'unknown';
const OTHER = 'other';

const OF_RUNNERS: ReadonlySet<RunnerPhase> = new Set(['node', 'register', 'start', 'idle']);

/** Limits the number of different repositories in metrics, since each one costs memory for as long as a bridge runs. */
export class RepositoryLabels {
  private readonly known = new Set<string>();

  of(job: GithubJob | null): string {
    const { repository = '' } = job ?? {};
    if (repository === '') return UNKNOWN;
    if (this.known.size < MAX_REPOSITORIES) this.known.add(repository);
    return this.known.has(repository) ? repository : OTHER;
  }
}

export class Phases {
  /** Milliseconds, by repository and phase. */
  private readonly times = new Map<string, Map<RunnerPhase, number[]>>();

  constructor(
    private readonly options: {
      readonly metrics: Metrics;
      readonly repositories: RepositoryLabels;
      readonly installation: string;
      readonly scaleSet: string;
    },
  ) {}

  observe(phase: RunnerPhase, job: GithubJob | null, ms: number): void {
    const { metrics, repositories, installation, scaleSet } = this.options;
    const repository = repositories.of(job);
    const declaration = OF_RUNNERS.has(phase) ? RUNNER_PHASE : JOB_PHASE;
    metrics.observe(declaration, { installation, scale_set: scaleSet, repository, phase }, ms);
    const phases = this.times.get(repository) ?? new Map<RunnerPhase, number[]>();
    const times = [...(phases.get(phase) ?? []), ms].slice(-MAX_TIMES);
    this.times.set(repository, phases.set(phase, times));
  }

  /** Returns the summary, sorted by repository. */
  summary(): readonly PhaseTimes[] {
    return [...this.times]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([repository, phases]) =>
        [...phases].map(([phase, times]) => {
          const sorted = [...times].sort((a, b) => a - b);
          const at = (share: number): number => (sorted[Math.ceil(share * sorted.length) - 1] ?? 0) / 1000;
          return { repository, phase, count: sorted.length, p50: at(0.5), p95: at(0.95) };
        }),
      );
  }
}
