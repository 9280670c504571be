/** What cinder allows a project, and how it says that it is too much. */

import { fits } from '../quotas.js';
import type { Quota } from '../settings.js';

/** Why a volume of this size is too much; undefined: it is not. */
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
