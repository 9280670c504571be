/** How long a request waits for a cloud that cannot be reached, refuses calls for their number, or fails by itself. */

import { ERROR_POLICIES, type DriverError } from '@nodepool/core';

/** Longest wait of one request for such a cloud, milliseconds; the pool then declines the request with the reason. */
export const OUTAGE_PATIENCE_MS = 600_000;

/** Returns true if the failure is the cloud's, so that whatever failed waits for it. */
export function isOutage({ code }: DriverError): boolean {
  return ERROR_POLICIES[code].isOutage;
}
