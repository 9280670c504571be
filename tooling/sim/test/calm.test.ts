/**
 * Runs without faults, or with one permanent fault, pass. Otherwise a violation by a mutated launcher would prove
 * nothing.
 */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS } from '../src/index.js';
import type { RunOrder } from '../src/simulation-pool.js';
import { useSimulationPool } from './pool.js';

const SEEDS = [1, 2, 3, 4, 5, 6];

const pool = useSimulationPool();

async function expectNoViolation(options: Omit<RunOrder, 'seed' | 'without'>, without = KNOWN_GAPS): Promise<void> {
  const results = await Promise.all(SEEDS.map((seed) => pool.run({ seed, without: [...without], ...options })));
  const found = results.map(({ seed, violation }) => ({ seed, violation }));
  expect(found).toEqual(SEEDS.map((seed) => ({ seed, violation: undefined })));
}

it('all rules, known gaps included, where a single launcher has no trouble', async () => {
  await expectNoViolation({ fault: 'nothing', launchers: 1, patienceMs: 600_000 }, new Set());
});

it('all rules where several launchers have no trouble', async () => {
  await expectNoViolation({ fault: 'nothing', patienceMs: 600_000 });
});

it('all rules where the cloud has less room than the pools', async () => {
  await expectNoViolation({ fault: 'quota' });
});

it('that no request fails or waits for a cloud that refuses while another one has room', async () => {
  await expectNoViolation({ fault: 'refusals' });
});

it('that a driver which never does what it shall delays nobody but its own provider', async () => {
  await expectNoViolation({ fault: 'driver' });
});
