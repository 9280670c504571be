/** Runs a range of seeds in parallel. */

import type { RunKind } from './run-kinds.js';
import type { RunResult } from './simulate.js';
import { SimulationPool } from './simulation-pool.js';

export interface SeedRange {
  readonly first: number;
  readonly count: number;
  readonly workers: number;
  readonly keepGoing: boolean;
  readonly kind: RunKind;
  /** Rules to ignore. */
  readonly without: readonly string[];
  /** True for runs with bridges for GitHub Actions. */
  readonly bridges: boolean;
}

/** Calls `onResult` for each completed seed. Resolves after all seeds or after the first failure. */
export async function runSeeds(range: SeedRange, onResult: (result: RunResult) => void): Promise<void> {
  let next = range.first;
  let over = false;
  const take = (): number | undefined => (over || next >= range.first + range.count ? undefined : next++);
  const report = (result: RunResult): void => {
    if (over) return;
    onResult(result);
    over = result.violation !== undefined && !range.keepGoing;
  };
  const workers = Math.min(range.workers, range.count);
  const pool = new SimulationPool(workers);
  const work = async (): Promise<void> => {
    for (let seed = take(); seed !== undefined; seed = take()) {
      const { kind, bridges, without } = range;
      report(await pool.run(bridges ? { seed, bridges, without } : { seed, fault: kind, without }));
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  pool.close();
}
