/** Classifies failed launches: the part that is faulty, and the cause for its circuit breaker. */

import { ERROR_POLICIES, TimeoutError, type DriverError, type DriverErrorCode, type FaultScope } from '@nodepool/core';
import type { BreakerCause } from '../diagnostics/health.js';

/** The launch took much longer than others of the label usually take, and another offer or pool can serve it. */
export class SlowLaunchError extends TimeoutError {}

export interface LaunchFault {
  readonly scope: FaultScope;
  readonly cause: BreakerCause;
}

const CAUSES: Partial<Readonly<Record<DriverErrorCode, BreakerCause>>> = {
  quota: 'quota',
  capacity: 'capacity',
  configuration: 'configuration',
  throttled: 'throttled',
  auth: 'auth',
  transient: 'unreachable',
};

/**
 * Returns the fault of a launch. `hasInstance`: its instance is known. Without circuit breakers, only a full quota is
 * not the fault of the node.
 */
export function faultOf(failure: DriverError, hasInstance: boolean, breakers: boolean): LaunchFault {
  if (failure instanceof SlowLaunchError) return { scope: 'offer', cause: 'slow' };
  const { code } = failure;
  if (code === 'timeout' && !hasInstance && breakers) return { scope: 'provider', cause: 'unreachable' };
  const { scope } = ERROR_POLICIES[code];
  const cause = CAUSES[code] ?? 'node';
  const isKept = breakers || cause === 'quota' || cause === 'configuration' || scope === 'none';
  return isKept ? { scope, cause } : { scope: 'node', cause: 'node' };
}
