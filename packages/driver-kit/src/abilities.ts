import { RULE_GROUPS } from './rule-groups.js';
import type { Ability } from './driver-fixture.js';

export const ABILITIES: readonly Ability[] = [
  ...new Set(RULE_GROUPS.flatMap(({ rules }) => rules).flatMap(({ needs = [], uses = [] }) => [...needs, ...uses])),
];

export function abilitiesExcept(...lacking: readonly Ability[]): readonly Ability[] {
  return ABILITIES.filter((ability) => !lacking.includes(ability));
}
