/** The contract as tests: a list of named cases for any runner, and the usual `describe` and `it`. */

import { CHAPTERS } from './chapters.js';
import { ContractViolation, reasonToSkip, type Rule } from './rule.js';
import type { DriverSubject } from './subject.js';
import { Trial } from './trial.js';

/** The version of the contract. Minor: rules were added; major: one asks for something else than before. */
export const CONTRACT_VERSION = '1.1';

/** The test of one rule with one driver. */
export interface ContractCase {
  readonly rule: Rule;
  /** `<id>: <title>` */
  readonly title: string;
  /** Why the rule is not checked; undefined: it is. */
  readonly skip: string | undefined;
  /** Resolves when the driver keeps the rule, rejects with a `ContractViolation`. */
  run(): Promise<void>;
}

/** The cases for a driver. Throws when an exemption is of no rule. */
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

/** Declares a test for each rule; those that are skipped say why. */
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
  // A driver that cannot be stopped breaks a rule as well, but what it did before says more.
  if (failures.length > 0) throw new ContractViolation(rule, failures[0]);
}
