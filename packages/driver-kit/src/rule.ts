/** A rule of the contract: what must hold, why, and the test of it. */

import type { Ability, DriverSubject } from './subject.js';
import type { Trial } from './trial.js';

export interface Rule {
  /** e.g. `life.launch`. Never used again for something else. */
  readonly id: string;
  /** Version of the contract that brought it. */
  readonly since: string;
  /** What must hold; the title of its test. */
  readonly title: string;
  /** What exactly, and why: Markdown for the page of the contract, and for who reads a failure. */
  readonly text: string;
  /** What the cloud must be able to do for the test. */
  readonly needs: readonly Ability[];
  /** Rejects when the rule is broken. */
  readonly check: (trial: Trial) => Promise<void>;
}

/** A part of the contract. */
export interface Chapter {
  readonly title: string;
  readonly text: string;
  readonly rules: readonly Rule[];
}

/** A driver breaks a rule. The message begins with the rule's id. */
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

/** Why the rule is not checked with this driver; undefined: it is. */
export function reasonToSkip(rule: Rule, subject: Pick<DriverSubject, 'can' | 'exempt'>): string | undefined {
  const exemption = subject.exempt?.[rule.id];
  if (exemption !== undefined) return exemption;
  const missing = rule.needs.filter((ability) => !subject.can.includes(ability));
  return missing.length === 0 ? undefined : `the test cloud lacks ${missing.join(', ')}`;
}
