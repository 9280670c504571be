/** Bridges for GitHub Actions satisfy all rules under faults: `pnpm sim --bridges` as a test. */

import { describe, expect, it } from '@jest/globals';
import { simulateBridges } from '../src/github/simulate-bridges.js';

/** `pnpm test:long` sets `NODEPOOL_SIM_SEEDS` to a larger number. */
const SEEDS = Number(process.env['NODEPOOL_SIM_SEEDS'] ?? '10');
const TIMEOUT_MS = 7_200_000;

describe('bridges', () => {
  it(
    'serve all jobs once without faults, and leave nothing',
    async () => {
      const { violation } = await simulateBridges({ seed: 1, faults: false });
      expect(violation).toBeUndefined();
    },
    TIMEOUT_MS,
  );

  it(
    `keep all rules in ${SEEDS} worlds with faults`,
    async () => {
      for (let seed = 1; seed <= SEEDS; seed += 1) {
        const { violation, lastSteps } = await simulateBridges({ seed });
        expect({ seed, violation, steps: violation === undefined ? [] : lastSteps }).toEqual({ seed, steps: [] });
      }
    },
    TIMEOUT_MS,
  );

  it(
    'a seed replays exactly',
    async () => {
      const run = async (): Promise<readonly string[]> => {
        const steps: string[] = [];
        await simulateBridges({ seed: 3, jobs: 8, onStep: (step) => steps.push(withoutPorts(step)) });
        return steps;
      };
      expect(await run()).toEqual(await run());
    },
    TIMEOUT_MS,
  );
});

/** The simulated GitHub listens on other ports in each run. */
function withoutPorts(step: string): string {
  return step.replaceAll(/127\.0\.0\.1:\d+/g, 'github');
}
