/** Faults of the simulated GitHub. */

import type { CallFault as AnyCallFault, FaultPlan, FaultRule as AnyFaultRule } from '@nodepool/simulated-cloud';
import type { RequestContext } from '@nodepool/simulated-cloud';
import type { RunnerBehaviour } from './runner-behaviour.js';
import type { Statistics } from './statistics.js';

/** A fault of a job message, e.g. `messageFaults.add({ on: 'JobStarted', fault: { kind: 'lost' } })`. */
export type MessageFault =
  /** The message never arrives. */
  | { readonly kind: 'lost' }
  /** The message arrives twice. */
  | { readonly kind: 'repeated' }
  /** The message arrives later (ms), so that others overtake it. */
  | { readonly kind: 'late'; readonly ms: number };

export type CallFault =
  /** `exception` is the name of the Actions service's exception. */
  | AnyCallFault<{ readonly exception?: string; readonly message?: string }>
  /** A call for messages is answered with other statistics. */
  | { readonly kind: 'statistics'; readonly statistics: Partial<Statistics> }
  /** The answer has its status, but no body. */
  | { readonly kind: 'empty' }
  /** The runner with the just-in-time configuration of this call has the given behaviour. */
  | { readonly kind: 'runner'; readonly behaviour: RunnerBehaviour };

export type FaultRule = AnyFaultRule<CallFault>;
export type MessageFaults = FaultPlan<MessageFault>;

/** A call as its handler receives it. */
export type GithubContext = RequestContext<CallFault>;

/** Returns the first fault of a kind that applies to a call. */
export function faultOf<K extends CallFault['kind']>(
  { faults }: Pick<GithubContext, 'faults'>,
  kind: K,
): Extract<CallFault, { readonly kind: K }> | undefined {
  return faults.find((fault): fault is Extract<CallFault, { readonly kind: K }> => fault.kind === kind);
}
