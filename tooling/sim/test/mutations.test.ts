/** For each rule, the checker detects a mutated launcher that violates it. */

import { describe, expect, it } from '@jest/globals';
import { MUTATIONS, RULES, simulate } from '../src/index.js';

/** Maximum number of seeds until a mutated launcher is detected. */
const SEEDS = 20;
/** Time limit for unfinished objects (ms), longer than a correct launcher needs without faults. */
const PATIENCE_MS = 600_000;

describe('a launcher that', () => {
  it.each(MUTATIONS)(
    '$name breaks rule $rule',
    async ({ rule, shows = '', fault = 'nothing', launchers, ...mutation }) => {
      const patienceMs = fault === 'nothing' || fault === 'quota' ? PATIENCE_MS : undefined;
      const broken: string[] = [];
      for (let seed = 1; seed <= SEEDS && !broken.includes(rule); seed += 1) {
        const options = { seed, fault, launchers, patienceMs, mutation: { rule, ...mutation }, only: rule };
        const { violation } = await simulate(options);
        if (violation?.what.includes(shows) === true) broken.push(violation.rule);
      }
      expect(broken).toContain(rule);
    },
  );
});

it('there is one for every rule of the checker', () => {
  expect([...new Set(MUTATIONS.map(({ rule }) => rule))].sort()).toEqual([...RULES].sort());
});
