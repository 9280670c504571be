/** Which images our account sees. */

import type { AwsCall } from '../call.js';
import { AwsError } from '../protocol/aws-error.js';
import type { Region } from '../region.js';
import { ACCOUNT } from '../settings.js';
import type { Image } from './records.js';

export function isVisible({ ownerId, isPublic, sharedWith }: Image): boolean {
  return ownerId === ACCOUNT || isPublic || sharedWith.has(ACCOUNT);
}

/** Returns an image that our account may use. Throws if there is none. */
export function requireImage(region: Region, id: string, { asOf }: Pick<AwsCall, 'asOf'>): Image {
  const image = region.images.find(id, asOf) ?? unknownOrMalformed(region, id, asOf);
  if (image !== undefined && isVisible(image)) return image;
  if (region.images.wasDeleted(id, asOf)) {
    throw new AwsError('InvalidAMIID.Unavailable', `The image ID '${id}' is no longer available`);
  }
  throw new AwsError('InvalidAMIID.NotFound', `The image id '[${id}]' does not exist`);
}

/** Throws if the id is malformed. */
function unknownOrMalformed(region: Region, id: string, asOf: number): Image | undefined {
  return /^ami-([0-9a-f]{8}|[0-9a-f]{17})$/.test(id) ? undefined : region.images.one(id, asOf);
}

/** Like `requireImage`. Throws if the image is not ours. */
export function requireOwnImage(region: Region, id: string, call: Pick<AwsCall, 'asOf'>): Image {
  const image = requireImage(region, id, call);
  if (image.ownerId === ACCOUNT) return image;
  throw new AwsError('AuthFailure', `Not authorized for image:${id}`, 403);
}
