import type { Ability, DriverFixture } from './driver-fixture.js';
import type { Check } from './rule-context.js';

export interface Rule {
  /** Unique and never reused for another rule, e.g. `life.launch`. */
  readonly id: string;
  /** Contract version that introduced the rule. */
  readonly since: string;
  /** The requirement in one line of Markdown, for the title of the test and the contract page. */
  readonly title: string;
  /** The precise requirement and its rationale in Markdown, for failure messages. */
  readonly text: string;
  /**
   * Drivers that the rule is for: those that create instances (the default), those that declare machines, those whose
   * nodes are slots of backing nodes (which also create instances), or all.
   */
  readonly appliesTo?: 'creating' | 'supplying' | 'backed' | 'all';
  /** Abilities of the cloud that the test requires; none by default. */
  readonly needs?: readonly Ability[];
  /** Further abilities that extend the test if the cloud has them. */
  readonly uses?: readonly Ability[];
  readonly check: Check;
}

export interface RuleGroup {
  readonly title: string;
  /** An introduction to the rules, in Markdown; empty if the title is enough. */
  readonly text: string;
  readonly rules: readonly Rule[];
}

/** A violation of a rule. The message begins with the rule's id. */
export class ContractViolation extends Error {
  constructor(
    readonly rule: Rule,
    cause: unknown,
  ) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`${rule.id} (contract ${rule.since}): ${rule.title}\n\n${reason}\n\n${rule.text}`, { cause });
    this.name = 'ContractViolation';
  }
}

/** Returns the reason to skip the rule with this driver, or undefined if it is checked. */
export function reasonToSkip(
  rule: Rule,
  fixture: Pick<DriverFixture, 'can' | 'exempt' | 'supplies' | 'backed'>,
): string | undefined {
  const exemption = fixture.exempt?.[rule.id];
  if (exemption !== undefined) return exemption;
  const { appliesTo = 'creating' } = rule;
  if (fixture.supplies === true && appliesTo === 'creating') return 'the driver creates no instances';
  if (fixture.supplies !== true && appliesTo === 'supplying') return 'the driver declares no machines';
  if (fixture.backed === undefined && appliesTo === 'backed') return 'its nodes are not slots of backing nodes';
  const missing = (rule.needs ?? []).filter((ability) => !fixture.can.includes(ability));
  return missing.length === 0 ? undefined : `the test cloud lacks ${missing.join(', ')}`;
}
