/** For each rule, the checker detects a mutated launcher that violates it. */

import { describe, expect, it } from '@jest/globals';
import { MUTATIONS, RULES } from '../src/index.js';
import { useSimulationPool } from './pool.js';

/** Maximum number of seeds until a mutated launcher is detected. */
const SEEDS = 20;
/** Time limit for unfinished objects (ms), longer than a correct launcher needs without faults. */
const WAIT_LIMIT_MS = 600_000;

const pool = useSimulationPool();

describe('a launcher that', () => {
  it.each(MUTATIONS)(
    '$name breaks rule $rule',
    async ({ name, rule, shows = '', fault = 'nothing', launchers, firstSeed = 1 }) => {
      const waitLimitMs = fault === 'nothing' || fault === 'quota' ? WAIT_LIMIT_MS : undefined;
      const broken: string[] = [];
      for (let seed = firstSeed; seed < firstSeed + SEEDS && !broken.includes(rule); seed += 1) {
        const { violation } = await pool.run({ seed, fault, launchers, waitLimitMs, mutation: name, only: rule });
        if (violation?.what.includes(shows) === true) broken.push(violation.rule);
      }
      expect(broken).toContain(rule);
    },
  );
});

it('a mutation exists for every rule of the checker', () => {
  expect([...new Set(MUTATIONS.map(({ rule }) => rule))].sort()).toEqual([...RULES].sort());
});

it('every mutation has a unique name', () => {
  const names = MUTATIONS.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
});
