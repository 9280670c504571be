/** Test cloud abilities that rules of the contract require. */

import { RULE_GROUPS } from './rule-groups.js';
import type { Ability } from './driver-fixture.js';

/** All abilities that any rule requires or uses. */
export const ABILITIES: readonly Ability[] = [
  ...new Set(RULE_GROUPS.flatMap(({ rules }) => rules).flatMap(({ needs = [], uses = [] }) => [...needs, ...uses])),
];

/** Returns all abilities except the given ones. */
export function abilitiesExcept(...lacking: readonly Ability[]): readonly Ability[] {
  return ABILITIES.filter((ability) => !lacking.includes(ability));
}
