/** The abilities that rules of the contract need of a test cloud. */

import { CHAPTERS } from './chapters.js';
import type { Ability } from './subject.js';

/** Every ability that a rule needs. */
export const ABILITIES: readonly Ability[] = [
  ...new Set(CHAPTERS.flatMap(({ rules }) => rules).flatMap(({ needs }) => needs)),
];

/** Returns every ability but these, for a cloud that has almost all. */
export function abilitiesExcept(...lacking: readonly Ability[]): readonly Ability[] {
  return ABILITIES.filter((ability) => !lacking.includes(ability));
}
