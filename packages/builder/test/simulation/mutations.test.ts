/** Proves that the checker can fail: it detects defective builders for each rule. */

import { describe, expect, it } from '@jest/globals';
import { MUTATIONS } from './mutations.js';
import { simulate } from './simulate.js';

/** Limit of seeds until a defective builder must be detected. */
const SEEDS = 6;
/** Time limit to reach a stable state (ms): a correct builder needs at most 8 minutes with these seeds. */
const WAIT_LIMIT_MS = 3_600_000;

describe('a builder that', () => {
  it.each(MUTATIONS)('$name breaks rule $rule', async ({ rule, firstSeed = 1, ...mutation }) => {
    const broken: string[] = [];
    for (let seed = firstSeed; seed < firstSeed + SEEDS && !broken.includes(rule); seed += 1) {
      const { violation } = await simulate({
        seed,
        waitLimitMs: WAIT_LIMIT_MS,
        mutation: { rule, ...mutation },
        only: rule,
      });
      if (violation !== undefined) broken.push(violation.rule);
    }
    expect(broken).toContain(rule);
  });
});
