/**
 * Rules for bridges. G1: each job is served once, or its failure is reported to GitHub. G2: no node and no runner is
 * used twice. G3: no registration is left. G4: no node and no request is left. G5: of several bridges one serves.
 */

import { unfinished, type UnfinishedWork } from '../rules/rest.js';
import type { BridgeWorld } from './bridge-world.js';

/** Numbers of the rules. */
export const BRIDGE_RULES: readonly string[] = ['G1', 'G2', 'G3', 'G4', 'G5'];

/**
 * Time limit for an unfinished object (ms): GitHub ends the job of a silent runner after ten minutes, assigns a job
 * anew after five, and a bridge waits five minutes for a node that cannot be reached.
 */
export const BRIDGE_BOUND_MS = 2_400_000;

/** Returns a violation that no later event can repair; undefined if there is none. */
export function* violations({ github, cancelled, machines }: BridgeWorld): Generator<UnfinishedWork> {
  for (const { number, state, result, startedBy } of github.inspect.jobs()) {
    const subject = `job ${number}`;
    if (startedBy.length > 1)
      yield { rule: 'G1', subject, what: `${subject} was started by ${startedBy.join(' and ')}` };
    if (state !== 'completed' || result === 'succeeded') continue;
    const isExpected = cancelled.has(number) || startedBy.some((runner) => machines.killed.has(runner));
    if (!isExpected)
      yield { rule: 'G1', subject, what: `${subject} is ${result ?? 'without result'} without a reason` };
  }
}

/** Yields every unfinished object. */
export function* unfinishedOfBridges(bridges: BridgeWorld): Generator<UnfinishedWork> {
  const { github, world } = bridges;
  yield* violations(bridges);
  for (const { number, state } of github.inspect.jobs()) {
    if (state !== 'completed') yield { rule: 'G1', subject: `job ${number}`, what: `job ${number} is still ${state}` };
  }
  for (const { name } of github.inspect.runners()) {
    yield { rule: 'G3', subject: `runner ${name}`, what: `the registration of runner ${name} is left` };
  }
  for (const { rule, subject, what } of unfinished(world)) {
    yield { rule: rule === 'L1' || rule === 'L3' ? 'G4' : rule, subject, what };
  }
}
