/** The contract as tests: a list of named cases for any runner, and a binding to the usual `describe` and `it`. */

import { RULE_GROUPS } from './rule-groups.js';
import { ContractViolation, reasonToSkip, type Rule } from './rule.js';
import type { DriverFixture } from './driver-fixture.js';
import { endAll } from './provider-harness.js';
import { RuleContext } from './rule-context.js';

/** Version of the contract. Its minor version changes with new rules, its major version with changed requirements. */
export const CONTRACT_VERSION = '1.7';

export interface ContractCase {
  readonly rule: Rule;
  /** `<id>: <title>` */
  readonly title: string;
  /** Reason to skip the rule; undefined if it is checked. */
  readonly skip: string | undefined;
  /** Resolves if the driver satisfies the rule; rejects with a `ContractViolation` if not. */
  run(): Promise<void>;
}

/** Returns the cases for a driver. Throws if an exemption names an unknown rule. */
export function driverContract(fixture: DriverFixture): readonly ContractCase[] {
  const rules = RULE_GROUPS.flatMap((group) => group.rules);
  for (const id of Object.keys(fixture.exempt ?? {})) {
    if (!rules.some((rule) => rule.id === id)) throw new RangeError(`there is no rule ${id} to be exempted from`);
  }
  return rules.map((rule) => ({
    rule,
    title: `${rule.id}: ${rule.title}`,
    skip: reasonToSkip(rule, fixture),
    run: () => check(rule, fixture),
  }));
}

/** `describe` and `it` of jest, vitest, mocha or node:test. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: ((name: string, body: () => Promise<void>) => unknown) & {
    skip(name: string, body: () => Promise<void>): unknown;
  };
}

/** Declares a test for each rule. The title of a skipped test contains the reason. */
export function describeDriverContract(fixture: DriverFixture, { describe, it }: TestRunner): void {
  describe(`${fixture.name}: driver contract ${CONTRACT_VERSION}`, () => {
    for (const each of driverContract(fixture)) {
      if (each.skip === undefined) it(each.title, () => each.run());
      else it.skip(`${each.title} (not checked: ${each.skip})`, () => each.run());
    }
  });
}

async function check(rule: Rule, fixture: DriverFixture): Promise<void> {
  const context = new RuleContext(fixture);
  try {
    // A driver that fails to stop also violates a rule, but the first failure is more informative.
    await endAll([() => rule.check(context), () => context.end()]);
  } catch (error) {
    throw new ContractViolation(rule, error);
  }
}
