/** A short round on an ensemble of three real servers. The long one is `pnpm chaos`. */

import { expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { FAULT_KINDS, faultPlan, type FaultCounts } from '../src/faults.js';
import { runRound } from '../src/round.js';

const SEED = 20261;
/** Without pauses, the load takes all processors from the other tests, and clients seldom get a lock. */
const PAUSE_MS = 3000;
const ONE_OF_EACH = Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 1])) as FaultCounts;

it('the plan contains all requested faults, in an order that depends on the seed', () => {
  const plan = faultPlan(ONE_OF_EACH, seededRandom(SEED));
  expect([...plan].sort()).toEqual([...FAULT_KINDS].sort());
  expect(faultPlan(ONE_OF_EACH, seededRandom(SEED))).toEqual(plan);
  expect(faultPlan(ONE_OF_EACH, seededRandom(SEED + 1))).not.toEqual(plan);
});

it('the client violates no rule while servers, connections and processes fail', async () => {
  const faults: FaultCounts = { ...ONE_OF_EACH, 'restart-server': 2 };
  const said: string[] = [];
  const onProgress = (line: string): void => void said.push(line);
  const load = { clients: 20, processes: 5, inFlight: 100, pauseMs: PAUSE_MS };
  const result = await runRound({ seed: SEED, ...load, faults, onProgress });
  expect(result.violations).toEqual([]);
  // Without load and losses, the rules would hold trivially.
  expect(result.fencedWrites).toBeGreaterThan(0);
  expect(result.sessionsLost).toBeGreaterThan(0);
  expect(result.unknownOutcomes).toBeGreaterThan(0);
  expect(result.watchReads).toBeGreaterThan(0);
  expect(said).toHaveLength(11);
});
