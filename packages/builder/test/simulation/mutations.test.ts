/** The checker can fail: for each rule there are spoilt builders that it catches. */

import { describe, expect, it } from '@jest/globals';
import { MUTATIONS } from './mutations.js';
import { simulate } from './simulate.js';

/** Seeds that may be needed until a spoilt builder gives itself away. */
const SEEDS = 8;

describe('a builder that', () => {
  it.each(MUTATIONS)(
    '$name breaks rule $rule',
    async ({ rule, ...mutation }) => {
      const broken: string[] = [];
      for (let seed = 1; seed <= SEEDS && !broken.includes(rule); seed += 1) {
        const { violation } = await simulate({ seed, mutation: { rule, ...mutation }, only: rule });
        if (violation !== undefined) broken.push(violation.rule);
      }
      expect(broken).toContain(rule);
    },
    180_000,
  );
});
