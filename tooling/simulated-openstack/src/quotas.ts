/** What each project may have, and what the cloud says that it may have. */

import { SAMPLE_QUOTAS, type Quota } from './settings.js';

/** The quota of one project, to be changed by a test. */
export interface ProjectQuota {
  /** Changes what is enforced, and said. */
  set(changes: Partial<Quota>): void;
  /** Changes what is said only: the cloud lies. Until the next `set`. */
  report(changes: Partial<Quota>): void;
}

interface Entry {
  enforced: Quota;
  reported: Quota;
}

export class Quotas {
  private readonly entries = new Map<string, Entry>(
    Object.entries(SAMPLE_QUOTAS).map(([name, quota]) => [name, { enforced: quota, reported: quota }]),
  );

  /** By name of the project. Throws when there is none. */
  project(name: string): ProjectQuota {
    const entry = this.entry(name);
    return {
      set: (changes) => {
        entry.enforced = { ...entry.enforced, ...changes };
        entry.reported = entry.enforced;
      },
      report: (changes) => {
        entry.reported = { ...entry.enforced, ...changes };
      },
    };
  }

  enforced(projectName: string): Quota {
    return this.entry(projectName).enforced;
  }

  reported(projectName: string): Quota {
    return this.entry(projectName).reported;
  }

  private entry(name: string): Entry {
    const entry = this.entries.get(name);
    if (entry !== undefined) return entry;
    throw new Error(`there is no project ${name}; projects: ${[...this.entries.keys()].join(', ')}`);
  }
}

/** Whether `wanted` more fit into a limit; -1 is unlimited. */
export function fits(limit: number, used: number, wanted: number): boolean {
  return limit < 0 || used + wanted <= limit;
}
