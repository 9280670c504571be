/** The seed determines a run completely. */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS, simulate } from '../src/index.js';

async function stepsOf(seed: number): Promise<string[]> {
  const steps: string[] = [];
  await simulate({ seed, without: KNOWN_GAPS, onStep: (step) => steps.push(step) });
  return steps;
}

it('a run repeats the same steps with the same seed', async () => {
  const steps = await stepsOf(3);
  expect(steps.length).toBeGreaterThan(100);
  expect(await stepsOf(3)).toEqual(steps);
});
