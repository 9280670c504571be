/** Faults of the simulated Google Cloud. */

import type { CallFault as AnyCallFault, FaultRule as AnyFaultRule, RequestContext } from '@nodepool/simulated-cloud';

export type CallFault =
  /** Default reason: `backendError`. */
  | AnyCallFault<{ readonly reason?: string; readonly message?: string }>
  /** The call is accepted, but its operation fails with this error and without effect. */
  | ({ readonly kind: 'operation-error' } & OperationError);

export type FaultRule = AnyFaultRule<CallFault>;

/** A call as its handler receives it. */
export type GceContext = RequestContext<CallFault>;

export interface OperationError {
  readonly code: string;
  readonly message: string;
}

/** Returns the error for the operation of a call, or undefined if it should succeed. */
export function operationErrorOf({ faults }: GceContext): OperationError | undefined {
  const fault = faults.find(({ kind }) => kind === 'operation-error');
  return fault?.kind === 'operation-error' ? { code: fault.code, message: fault.message } : undefined;
}
