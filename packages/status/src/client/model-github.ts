/** The document of GitHub Actions: the scale sets of all bridges, their jobs, and the times of repositories. */

import type { RequestRow } from './model-parts.js';

export interface GithubDocument {
  /** False until the launcher has read all records. */
  readonly complete: boolean;
  readonly scaleSets: readonly ScaleSetStatus[];
  readonly repositories: readonly RepositoryTimes[];
  /** Jobs that wait, longest first, then those that run, then those that ended last. */
  readonly jobs: readonly JobRow[];
  readonly counts: { readonly waiting: number; readonly running: number };
}

export interface ScaleSetStatus {
  /** `installation/scale set`. */
  readonly name: string;
  /** Page of the installation; null if its address is not usable. */
  readonly url: string | null;
  readonly nodeLabel: string;
  /** Host and process of the bridge that has served it last. */
  readonly bridge: string;
  /** Number of running bridges that serve it or stand by. */
  readonly bridges: number;
  readonly problem: string | null;
  readonly capacity: number;
  readonly capacityReason: string;
  /** By GitHub: offered to it, assigned to it (running ones included), and running. */
  readonly jobs: { readonly available: number; readonly assigned: number; readonly running: number };
  readonly runners: readonly { readonly state: string; readonly count: number }[];
  /** Time of the last change. */
  readonly changed: number;
}

/** Times of a phase, seconds. */
export interface TimesOfPhase {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
}

/** The last times of one repository in one scale set; a phase without times is missing. */
export interface RepositoryTimes {
  readonly repository: string;
  readonly scaleSet: string;
  readonly phases: Readonly<Partial<Record<string, TimesOfPhase>>>;
}

export interface JobRow {
  readonly id: string;
  readonly name: string;
  readonly repository: string;
  /** Page of its run; null if its address is not known. */
  readonly url: string | null;
  readonly scaleSet: string;
  readonly state: 'offered' | 'assigned' | 'running' | 'completed';
  readonly since: number;
  readonly queued: number | null;
  readonly result: string | null;
  readonly says: string;
  readonly request: Pick<RequestRow, 'id' | 'reason'> | null;
  readonly node: string | null;
}

/** The job that a request or a node is for. */
export interface JobLink {
  readonly name: string;
  readonly repository: string;
  readonly url: string | null;
}
