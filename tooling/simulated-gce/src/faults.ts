/** Faults of the simulated Google Cloud. */

import type { CallFault as AnyCallFault, FaultRule as AnyFaultRule, RequestContext } from '@nodepool/simulated-cloud';

export type CallFault =
  /** Default for the reason: `backendError`. */
  | AnyCallFault<{ readonly reason?: string; readonly message?: string }>
  /** The call is accepted, and its operation ends with this error, without effect. */
  | ({ readonly kind: 'operation-error' } & OperationError);

export type FaultRule = AnyFaultRule<CallFault>;

/** A call as its handler receives it. */
export type GceContext = RequestContext<CallFault>;

export interface OperationError {
  readonly code: string;
  readonly message: string;
}

/** Returns the error that the operation of a call ends with; undefined if it is to succeed. */
export function operationErrorOf({ faults }: GceContext): OperationError | undefined {
  const fault = faults.find(({ kind }) => kind === 'operation-error');
  return fault?.kind === 'operation-error' ? { code: fault.code, message: fault.message } : undefined;
}
