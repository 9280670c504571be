/** Test cloud abilities that rules of the contract require. */

import { CHAPTERS } from './chapters.js';
import type { Ability } from './subject.js';

/** All abilities that any rule requires. */
export const ABILITIES: readonly Ability[] = [
  ...new Set(CHAPTERS.flatMap(({ rules }) => rules).flatMap(({ needs }) => needs)),
];

/** Returns all abilities except the given ones. */
export function abilitiesExcept(...lacking: readonly Ability[]): readonly Ability[] {
  return ABILITIES.filter((ability) => !lacking.includes(ability));
}
