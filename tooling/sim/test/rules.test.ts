/** A launcher keeps the rules, whatever goes wrong around it. */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS, simulate } from '../src/index.js';

const SEEDS = Number(process.env['NODEPOOL_SIM_SEEDS'] ?? 20);

it(`keeps all rules in ${SEEDS} worlds full of trouble`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation, lastSteps } = await simulate({ seed, without: KNOWN_GAPS });
    expect({ seed, violation, lastSteps: violation === undefined ? [] : lastSteps }).toEqual({
      seed,
      violation: undefined,
      lastSteps: [],
    });
  }
}, 600_000);

it('keeps all rules, known gaps included, where a single launcher has no trouble', async () => {
  for (let seed = 1; seed <= 5; seed += 1) {
    const { violation } = await simulate({ seed, trouble: false, launchers: 1 });
    expect({ seed, violation }).toEqual({ seed, violation: undefined });
  }
}, 180_000);
