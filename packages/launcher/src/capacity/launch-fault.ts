/** Classifies failed launches: which part is at fault, and the cause that its circuit breaker counts. */

import { ERROR_POLICIES, TimeoutError, type DriverError, type DriverErrorCode, type FaultScope } from '@nodepool/core';
import type { BreakerCause } from '@nodepool/status';

/** The launch took much longer than usual for its label, and another offer or pool can serve it. */
export class SlowLaunchError extends TimeoutError {}

export interface LaunchFault {
  readonly scope: FaultScope;
  readonly cause: BreakerCause;
}

const CAUSES: Partial<Readonly<Record<DriverErrorCode, BreakerCause>>> = {
  quota: 'quota',
  capacity: 'capacity',
  configuration: 'configuration',
  refused: 'refused',
  throttled: 'throttled',
  auth: 'auth',
  certificate: 'certificate',
  transient: 'unreachable',
};

/** Returns the cause that a circuit breaker counts for a failure. */
export function causeOf({ code }: Pick<DriverError, 'code'>): BreakerCause {
  return CAUSES[code] ?? 'node';
}

/**
 * Returns the fault of a failed launch. `hasInstance` is true if its instance is known. Without circuit breakers, every
 * failure except a full quota counts as the fault of the node.
 */
export function faultOf(failure: DriverError, hasInstance: boolean, breakers: boolean): LaunchFault {
  if (failure instanceof SlowLaunchError) return { scope: 'offer', cause: 'slow' };
  const { code } = failure;
  if (code === 'timeout' && !hasInstance && breakers) return { scope: 'provider', cause: 'unreachable' };
  const { scope } = ERROR_POLICIES[code];
  const cause = causeOf(failure);
  const isKept = breakers || cause === 'quota' || cause === 'configuration' || scope === 'none';
  return isKept ? { scope, cause } : { scope: 'node', cause: 'node' };
}
