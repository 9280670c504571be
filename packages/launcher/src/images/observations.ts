/** Reads from node records what nodes in a trial have shown. */

import type { Node } from '@nodepool/core';
import type { Observation } from './canary-test.js';

/** States of a node whose job has ended, or that will have none. */
const DONE: ReadonlySet<Node['state']> = new Set(['used', 'hold', 'deleting', 'deleted', 'failed', 'aborted']);

/** Returns the observations that the present record of a node allows. */
export function observationsOf({
  id: node,
  state,
  trial,
  interruption,
  job_result: result,
}: Node): readonly Observation[] {
  if (trial === undefined || trial === null || trial.launch === null) return [];
  const observations: Observation[] = [{ kind: 'launch', node, trial }];
  const isReady = trial.launch === 'ready';
  // The cloud or an operator has ended an interrupted node, so its job says nothing about the image.
  if (isReady && interruption === null && (result === 'success' || result === 'failure'))
    observations.push({ kind: 'job', node, trial, failed: result === 'failure' });
  if (!isReady || DONE.has(state)) observations.push({ kind: 'end', node, trial });
  return observations;
}
