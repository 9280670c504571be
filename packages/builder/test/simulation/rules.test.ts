/**
 * Builders keep the rules under all faults. `NODEPOOL_SIM_SEEDS` sets the number of seeds; `NODEPOOL_SIM_SEED` runs one
 * and prints its steps.
 */

import { expect, it } from '@jest/globals';
import { simulate } from './simulate.js';

const ONE = process.env['NODEPOOL_SIM_SEED'];
const SEEDS = Number(process.env['NODEPOOL_SIM_SEEDS'] ?? 12);

if (ONE === undefined) {
  it(`builders keep all rules in ${SEEDS} worlds with faults`, async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const { violation, lastSteps } = await simulate({ seed });
      expect({ seed, violation, lastSteps: violation === undefined ? [] : lastSteps }).toEqual({
        seed,
        violation: undefined,
        lastSteps: [],
      });
    }
  }, 86_400_000);

  it(`builders keep all rules in ${SEEDS} worlds with faults, boot tests and launch tests`, async () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const { violation, lastSteps } = await simulate({ seed, withTests: true });
      expect({ seed, violation, lastSteps: violation === undefined ? [] : lastSteps }).toEqual({
        seed,
        violation: undefined,
        lastSteps: [],
      });
    }
  }, 86_400_000);
} else {
  it(`builders keep all rules in world ${ONE}`, async () => {
    const onStep = (step: string): void => void process.stdout.write(`${step}\n`);
    expect((await simulate({ seed: Number(ONE), onStep })).violation).toBeUndefined();
  });
}

it('builders repeat the same steps with the same seed', async () => {
  const stepsOf = async (seed: number): Promise<string[]> => {
    const steps: string[] = [];
    await simulate({ seed, onStep: (step) => steps.push(step) });
    return steps;
  };
  const steps = await stepsOf(3);
  expect(steps.length).toBeGreaterThan(100);
  expect(await stepsOf(3)).toEqual(steps);
});
