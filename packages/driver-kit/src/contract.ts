/** The contract as tests: a list of named cases for any runner, and a binding to the usual `describe` and `it`. */

import { CHAPTERS } from './chapters.js';
import { ContractViolation, reasonToSkip, type Rule } from './rule.js';
import type { DriverSubject } from './subject.js';
import { Trial } from './trial.js';

/**
 * Version of the contract. The minor version changes if rules are added, the major version if a rule's requirements
 * change.
 */
export const CONTRACT_VERSION = '1.2';

/** The test of one rule with one driver. */
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
export function driverContract(subject: DriverSubject): readonly ContractCase[] {
  const rules = CHAPTERS.flatMap((chapter) => chapter.rules);
  for (const id of Object.keys(subject.exempt ?? {})) {
    if (!rules.some((rule) => rule.id === id)) throw new RangeError(`there is no rule ${id} to be exempted from`);
  }
  return rules.map((rule) => ({
    rule,
    title: `${rule.id}: ${rule.title}`,
    skip: reasonToSkip(rule, subject),
    run: () => check(rule, subject),
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
export function describeDriverContract(subject: DriverSubject, { describe, it }: TestRunner): void {
  describe(`${subject.name}: driver contract ${CONTRACT_VERSION}`, () => {
    for (const each of driverContract(subject)) {
      if (each.skip === undefined) it(each.title, () => each.run());
      else it.skip(`${each.title} (not checked: ${each.skip})`, () => each.run());
    }
  });
}

async function check(rule: Rule, subject: DriverSubject): Promise<void> {
  const trial = new Trial(subject);
  const failures: unknown[] = [];
  for (const step of [() => rule.check(trial), () => trial.end()]) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  // A driver that fails to stop also violates a rule, but the first failure is more informative.
  if (failures.length > 0) throw new ContractViolation(rule, failures[0]);
}
