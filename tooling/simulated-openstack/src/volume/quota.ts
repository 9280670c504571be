/** Quota checks of cinder and their errors. */

import { fits } from '../quotas.js';
import type { Quota } from '../settings.js';

/** Returns why a volume of this size exceeds the quota, or undefined if it fits. */
export function volumeQuotaProblem(
  quota: Quota,
  used: { readonly volumes: number; readonly gigabytes: number },
  sizeGb: number,
): string | undefined {
  if (!fits(quota.gigabytes, used.gigabytes, sizeGb)) {
    return `VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested ${sizeGb}G, quota is ${quota.gigabytes}G and ${used.gigabytes}G has been consumed.`;
  }
  if (!fits(quota.volumes, used.volumes, 1)) {
    return `VolumeLimitExceeded: Maximum number of volumes allowed (${quota.volumes}) exceeded for quota 'volumes'.`;
  }
  return undefined;
}
