/** All rules. `RULES_OF_STEPS` are checked at every step; the others at the end of a run. */

import { dirtyStaysDirty, fulfilledMeansReady, oneRequestPerNode } from './allocation.js';
import { refusalsFailNoRequest, capacityIsUsed } from './capacity.js';
import { poolsOutliveConfigurations } from './configuration.js';
import { currentImageStays, rejectedImagesServeNobody, testedImagesOnly, usedImagesStay } from './images.js';
import {
  instancesSayWhatTheyAre,
  nodesHaveTheirInstance,
  oneInstancePerAttempt,
  onlyGarbageIsDeleted,
  recordsOutliveInstances,
} from './instances.js';
import { launchesFitTheirLimits } from './limits.js';
import { fulfilledNodesExist } from './lost-instances.js';
import { oneNodePerSlot, usableMachinesOnly, usedMachinesStay } from './machines.js';
import { prioritiesAreKept } from './order.js';
import type { Rule, CheckerView } from './rule.js';
import { sharesAreKept } from './shares.js';
import { backingNodesArePacked, oneNodePerBackingSlot, usedBackingNodesStay } from './slots.js';
import { noExcessReadyNodes } from './supply.js';
import { nothingIsDeletedInDoubt } from './suspensions.js';
import { unknownFieldsSurvive, waitingRequestsRest, writesAreOwned } from './writes.js';

export const RULES_OF_STEPS: readonly ((view: CheckerView) => Rule)[] = [
  oneRequestPerNode,
  fulfilledMeansReady,
  fulfilledNodesExist,
  oneInstancePerAttempt,
  instancesSayWhatTheyAre,
  onlyGarbageIsDeleted,
  nothingIsDeletedInDoubt,
  writesAreOwned,
  dirtyStaysDirty,
  launchesFitTheirLimits,
  recordsOutliveInstances,
  nodesHaveTheirInstance,
  unknownFieldsSurvive,
  poolsOutliveConfigurations,
  noExcessReadyNodes,
  prioritiesAreKept,
  oneNodePerSlot,
  usedMachinesStay,
  usableMachinesOnly,
  refusalsFailNoRequest,
  capacityIsUsed,
  waitingRequestsRest,
  oneNodePerBackingSlot,
  usedBackingNodesStay,
  backingNodesArePacked,
  sharesAreKept,
  testedImagesOnly,
  rejectedImagesServeNobody,
  currentImageStays,
  usedImagesStay,
];

/** Numbers of all rules that the checker knows, as in the design. */
export const RULES: readonly string[] = [
  ...['S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'S7', 'S8', 'S9', 'S11', 'S12', 'S13', 'S14'],
  ...['L1', 'L2', 'L3', 'L4', 'L5', 'L6'],
  ...['C1', 'C2'],
  'O1',
  'F1',
  ...['M1', 'M2', 'M3', 'M4'],
  ...['B1', 'B2', 'B3', 'B4'],
  ...['I1', 'I2', 'I3', 'I4', 'I5'],
  'W1',
];
