/** Compares the runners in GitHub with those of the bridge. A difference counts once two listings have shown it. */

import type { Agent } from '../github/documents.js';
import { isRunnerName } from '../runners/runner.js';

/** Maximum number of registrations that one comparison deletes, so that a defect cannot delete many. */
export const MAX_DELETIONS = 20;

export interface ComparedRunner {
  readonly name: string;
  /** Id in GitHub; null before its registration. */
  readonly agent: number | null;
  /** True if it was registered before the listing began. */
  readonly isRegistered: boolean;
}

export interface AgentDifferences {
  /** Registrations without a runner, which can be deleted. */
  readonly orphans: readonly Agent[];
  /** Names of runners that GitHub does not know any more. */
  readonly gone: readonly string[];
}

export class AgentComparison {
  private orphans: ReadonlySet<number> = new Set();
  private gone: ReadonlySet<string> = new Set();

  /**
   * Compares a complete listing with the runners after it. Registrations of other scale sets, and those whose names
   * have another form, belong to others.
   */
  compare(
    agents: readonly Agent[],
    runners: readonly ComparedRunner[],
    set: { readonly id: number; readonly name: string },
  ): AgentDifferences {
    const own = agents.filter(({ scaleSetId, name }) => scaleSetId === set.id && isRunnerName(name, set.name));
    const known = new Set(runners.map(({ name }) => name));
    const orphans = own.filter(({ name }) => !known.has(name));
    const listed = new Set(own.map(({ name }) => name));
    const gone = runners.filter(({ name, isRegistered }) => isRegistered && !listed.has(name)).map(({ name }) => name);
    const result = {
      orphans: orphans.filter(({ id }) => this.orphans.has(id)).slice(0, MAX_DELETIONS),
      gone: gone.filter((name) => this.gone.has(name)),
    };
    this.orphans = new Set(orphans.map(({ id }) => id));
    this.gone = new Set(gone);
    return result;
  }

  /** Forgets earlier listings, e.g. after a time without GitHub. */
  reset(): void {
    this.orphans = new Set();
    this.gone = new Set();
  }
}
