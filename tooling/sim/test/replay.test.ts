/** The seed determines a run completely. */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS, simulate } from '../src/index.js';

async function stepsOf(seed: number): Promise<string[]> {
  const steps: string[] = [];
  await simulate({ seed, without: KNOWN_GAPS, onStep: (step) => steps.push(step) });
  return steps;
}

it('takes the same steps when it is run again', async () => {
  for (const seed of [3, 4]) {
    const steps = await stepsOf(seed);
    expect(steps.length).toBeGreaterThan(100);
    expect(await stepsOf(seed)).toEqual(steps);
  }
});
