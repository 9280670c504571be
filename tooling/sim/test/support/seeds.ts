/** A share of the seeds that every test run goes through: files run side by side, so the seeds are divided among files. */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS, simulate } from '../../src/index.js';

/** Seeds of all shares together. `pnpm test:long` sets `NODEPOOL_SIM_SEEDS` to a larger number. */
const SEEDS = Number(process.env['NODEPOOL_SIM_SEEDS'] ?? 200);
const SHARES = 4;
const TIMEOUT_MS = 7_200_000;

/** Defines the test of one share, 1 to 4. */
export function testShareOfSeeds(share: number): void {
  const first = Math.floor(((share - 1) * SEEDS) / SHARES) + 1;
  const last = Math.floor((share * SEEDS) / SHARES);
  it(
    `launchers keep all rules in worlds full of trouble, seeds ${first} to ${last}`,
    async () => {
      for (let seed = first; seed <= last; seed += 1) {
        const { violation, lastSteps } = await simulate({ seed, without: KNOWN_GAPS });
        expect({ seed, violation, lastSteps: violation === undefined ? [] : lastSteps }).toEqual({
          seed,
          violation: undefined,
          lastSteps: [],
        });
      }
    },
    TIMEOUT_MS,
  );
}
