/** Kinds of runs by their faults; `RunOptions` describes them. */

export const FAULT_KINDS = [
  'all',
  'nothing',
  'quota',
  'driver',
  'refusals',
  'losses',
  'ids',
  'slots',
  'images',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];
