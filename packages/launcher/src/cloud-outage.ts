/** Limit of the wait for a cloud that is unreachable, throttles calls, or fails with an internal error. */

import { ERROR_POLICIES, type DriverError } from '@nodepool/core';

/**
 * Longest wait of a request for an unavailable cloud, in milliseconds; the pool then declines the request with the
 * reason.
 */
export const MAX_OUTAGE_WAIT_MS = 600_000;

/**
 * Returns true if the error is an outage of the cloud, so that the failed work is retried once the cloud answers again.
 */
export function isOutage({ code }: DriverError): boolean {
  return ERROR_POLICIES[code].isOutage;
}
