/** All rules that must hold after a round. */

import type { ClientHistory, FinalState, Violation } from '../history.js';
import { checkLocks } from './locks.js';
import { checkNodeWrites } from './node-writes.js';
import { checkRegisters } from './registers.js';
import { checkEphemerals, checkOutcomes, checkTrees } from './sessions.js';
import { checkWatches } from './watches.js';

/** Returns all violations. */
export function check(histories: readonly ClientHistory[], final: FinalState): Violation[] {
  return [
    ...checkOutcomes(histories),
    ...checkNodeWrites(histories, final),
    ...checkRegisters(histories, final),
    ...checkWatches(histories, final),
    ...checkLocks(histories, final),
    ...checkEphemerals(histories, final),
    ...checkTrees(histories, final),
  ];
}
