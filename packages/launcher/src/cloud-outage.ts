/** Limits the wait for a cloud that is unreachable, throttles calls, or fails by itself. */

import { ERROR_POLICIES, type DriverError } from '@nodepool/core';

/** Longest wait of one request for such a cloud, milliseconds; the pool then declines the request with the reason. */
export const MAX_OUTAGE_WAIT_MS = 600_000;

/** Returns true if the failure is the cloud's, so that the failed work waits for the cloud. */
export function isOutage({ code }: DriverError): boolean {
  return ERROR_POLICIES[code].isOutage;
}
