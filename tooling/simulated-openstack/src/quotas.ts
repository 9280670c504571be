/** Enforced and reported quotas of the projects. */

import { SAMPLE_QUOTAS, type Quota } from './settings.js';

/** The quota of one project, which tests can change. */
export interface ProjectQuota {
  /** Changes the enforced and the reported quota. */
  set(changes: Partial<Quota>): void;
  /** Changes only the reported quota until the next `set`. */
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

  /** Returns a quota by project name. Throws if the project does not exist. */
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

/** Returns true if `wanted` more fit into a limit; -1 is unlimited. */
export function fits(limit: number, used: number, wanted: number): boolean {
  return limit < 0 || used + wanted <= limit;
}
