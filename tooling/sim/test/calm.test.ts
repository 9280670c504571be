/**
 * Runs without faults, or with one permanent fault, pass. Otherwise a violation by a mutated launcher would prove
 * nothing.
 */

import { expect, it } from '@jest/globals';
import { KNOWN_GAPS } from '../src/index.js';
import type { RunOrder } from '../src/simulation-pool.js';
import { useSimulationPool } from './pool.js';

/** `pnpm test:long` sets `NODEPOOL_SIM_SEEDS`. */
const SEEDS = process.env['NODEPOOL_SIM_SEEDS'] === undefined ? [1, 2] : [1, 2, 3, 4, 5, 6];

const pool = useSimulationPool();

async function expectNoViolation(options: Omit<RunOrder, 'seed' | 'without'>, without = KNOWN_GAPS): Promise<void> {
  const results = await Promise.all(SEEDS.map((seed) => pool.run({ seed, without: [...without], ...options })));
  const found = results.map(({ seed, violation }) => ({ seed, violation }));
  expect(found).toEqual(SEEDS.map((seed) => ({ seed, violation: undefined })));
}

it('a single launcher without faults keeps all rules, including known gaps', async () => {
  await expectNoViolation({ fault: 'nothing', launchers: 1, waitLimitMs: 600_000 }, new Set());
});

it('several launchers without faults keep all rules', async () => {
  await expectNoViolation({ fault: 'nothing', waitLimitMs: 600_000 });
});

it('launchers keep all rules when the cloud has less capacity than the pools', async () => {
  await expectNoViolation({ fault: 'quota' });
});

it('no request fails or waits for a cloud without capacity while another one has capacity', async () => {
  await expectNoViolation({ fault: 'refusals' });
});

it('ready nodes that lose their instances are replaced, and no request gets one that the cloud no longer lists', async () => {
  await expectNoViolation({ fault: 'losses' });
});

it('no launcher deletes or uses the instance of another node in a cloud that uses ids again', async () => {
  await expectNoViolation({ fault: 'ids' });
});

it('nodes on backing nodes never share a slot, and no backing node is released early or kept for ever', async () => {
  await expectNoViolation({ fault: 'slots' });
});

it('tenants get their shares of a pool that is too small for all', async () => {
  await expectNoViolation({ fault: 'shares' });
});

it('a defective driver delays only its own provider', async () => {
  await expectNoViolation({ fault: 'driver' });
});
