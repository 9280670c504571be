/**
 * Tells uploaded images from copies. The cloud copies all properties of an image, our tags included, into each
 * snapshot, backup and shelved disk of a server, and into images that are created from volumes.
 * `docs/drivers/openstack.md` lists the copies.
 */

import type { RandomSource } from '@nodepool/core';
import type { Image } from './client/image.js';

/** Property with the image's own id, which a copy has, too, with the id of the original. */
export const IMAGE_ID = 'nodepool_image_id';

/** Properties that nova adds to images of servers, for images without `IMAGE_ID` (those of the Python Nodepool). */
const OF_SERVERS = ['instance_uuid', 'base_image_ref', 'bdm_v2'];
/** Values of the property `image_type` that nova writes. */
const TYPES_OF_SERVERS = new Set(['snapshot', 'backup']);

/** Returns an id for a new image. The builder chooses it, so that the image contains it from its creation. */
export function newImageId(random: RandomSource): string {
  const hex = random.uuidHex();
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Returns true if the image is certainly an uploaded one and no copy. */
export function isOriginal({ id, properties }: Image): boolean {
  return properties[IMAGE_ID] === id;
}

/** Returns true if the image is certainly a copy. */
export function isCopy({ id, properties }: Image): boolean {
  const own = properties[IMAGE_ID];
  if (own !== undefined) return own !== id;
  return OF_SERVERS.some((name) => name in properties) || TYPES_OF_SERVERS.has(properties['image_type'] ?? '');
}
