/**
 * Launchers and builders keep the rules of images with tests, while both are killed at any step, some images are bad,
 * and an operator decides about them. `NODEPOOL_SIM_SEEDS` sets the number of seeds. The runs are in this process, so
 * that deliberate defects of the sources are seen.
 */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS, simulate } from '../src/index.js';

const SEEDS = Number(process.env['NODEPOOL_SIM_SEEDS'] ?? 3);

it(`no request gets a bad image, and the current one is never lost, in ${SEEDS} worlds with faults`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await simulate({ seed, fault: 'images', requests: 12, without: KNOWN_GAPS });
    expect({ seed, violation }).toEqual({ seed, violation: undefined });
  }
}, 7_200_000);
