/** Random tenants with random weights in contention for an hour: shares, use of the capacity, and waits. */

import { expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { Contention, shares, type TenantDemand } from './support/contention.js';
import { pool, provider, World } from './support/world.js';

/** `NODEPOOL_SEEDS` sets another number. */
const SEEDS = Number(process.env['NODEPOOL_SEEDS'] ?? '3');
const SERVERS = 12;
const SECONDS = 3600;

interface Outcome {
  readonly seed: number;
  /** Tenants whose part differs from their share by more than 5 % of the capacity. */
  readonly unfair: readonly string[];
  /** Part of the capacity that was used. */
  readonly used: number;
  /** Tenants that got nothing for a quarter of an hour. */
  readonly starved: readonly string[];
}

async function outcomeOf(seed: number): Promise<Outcome> {
  const world = new World(seed);
  const random = seededRandom(seed);
  const upTo = (max: number): number => Math.floor(random.next() * max);
  const weights: Record<string, number> = {};
  for (let count = 2 + upTo(3); count > 0; count -= 1) weights[`tenant-${count}`] = 1 + upTo(4);
  const sections = [provider('demo', [pool('main', ['small', 'large', 'other'], { 'max-servers': SERVERS })])];
  const launcher = await world.launcher(sections, 'launcher1', { fairShares: shares(weights) });
  const demands = Object.keys(weights).map((tenant): TenantDemand => {
    const longest = 60 + upTo(240);
    let requests = 0;
    return {
      tenant,
      labels: [['small'], ['large'], ['other', 'small']][upTo(3)] ?? ['small'],
      // One tenant floods the queue.
      backlog: tenant === 'tenant-1' ? 40 : 6,
      hold: () => 30 + longest * random.next(),
      project: () => `project-${(requests += 1) % (tenant === 'tenant-1' ? 1000 : 2)}`,
      priority: () => 100 * (1 + upTo(3)),
    };
  });
  // At first, no tenant has a past.
  const contention = new Contention(world, launcher);
  await contention.run(demands, 900);
  await contention.run(demands, SECONDS);
  expect(await world.end()).toEqual([]);
  const total = Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  const parts = contention.parts();
  const unfair = Object.entries(weights)
    .filter(([tenant, weight]) => Math.abs((parts[tenant] ?? 0) - weight / total) > 0.05)
    .map(([tenant, weight]) => `${tenant}: ${parts[tenant] ?? 0} of ${weight / total}`);
  const used = contention.nodeSeconds / (SERVERS * SECONDS);
  const starved = [...contention.longestDrought].flatMap(([tenant, seconds]) => (seconds > 900 ? [tenant] : []));
  return { seed, unfair, used, starved };
}

it('tenants get their shares within 5 % of the capacity, and no capacity is idle', async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const outcome = await outcomeOf(seed);
    expect(outcome).toEqual({ seed, unfair: [], used: expect.any(Number), starved: [] });
    expect(outcome.used).toBeGreaterThan(0.9);
  }
});
