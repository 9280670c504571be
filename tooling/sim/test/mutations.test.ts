/** The checker can fail: for each rule there is a spoilt launcher that it catches. */

import { describe, expect, it } from '@jest/globals';
import { MUTATIONS, simulate } from '../src/index.js';

/** Seeds that may be needed until a spoilt launcher gives itself away. */
const SEEDS = 5;

describe('a launcher that', () => {
  it.each(MUTATIONS)(
    '$name breaks rule $rule',
    async ({ rule, ...mutation }) => {
      const broken: string[] = [];
      for (let seed = 1; seed <= SEEDS && !broken.includes(rule); seed += 1) {
        const trouble = rule.startsWith('L3');
        const launchers = rule === 'S8' ? 1 : 3;
        // Without trouble, a sound launcher is done in a third of that.
        const patienceMs = trouble ? 1_800_000 : 600_000;
        const { violation } = await simulate({
          seed,
          trouble,
          launchers,
          patienceMs,
          mutation: { rule, ...mutation },
          only: rule,
        });
        if (violation !== undefined) broken.push(violation.rule);
      }
      expect(broken).toContain(rule);
    },
    180_000,
  );
});
