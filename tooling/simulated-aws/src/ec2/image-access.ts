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
  const image = region.images.one(id, asOf);
  if (isVisible(image)) return image;
  throw new AwsError('InvalidAMIID.NotFound', `The image id '[${id}]' does not exist`);
}

/** Like `requireImage`. Throws if the image is not ours. */
export function requireOwnImage(region: Region, id: string, call: Pick<AwsCall, 'asOf'>): Image {
  const image = requireImage(region, id, call);
  if (image.ownerId === ACCOUNT) return image;
  throw new AwsError('AuthFailure', `Not authorized for image:${id}`, 403);
}
