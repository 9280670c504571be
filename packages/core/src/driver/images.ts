/** Image management, for drivers of clouds that take disk images. */

import { createHash } from 'node:crypto';
import type { JsonObject } from '../model/json.js';
import type { ExternalId } from '../model/node.js';
import type { Call } from './call.js';

/** Tags of an image. Only all of them together identify one: upload ids are sequences per build and provider. */
export const IMAGE_TAGS = [
  'nodepool_installation',
  'nodepool_provider_name',
  'nodepool_image_name',
  'nodepool_build_id',
  'nodepool_upload_id',
  'nodepool_image_format',
] as const;

export type ImageTags = Readonly<Record<(typeof IMAGE_TAGS)[number], string>>;

/** Returns a hash of all tags of an image, 16 hex digits, for clouds in which images and files are found by their names. */
export function imageTagsHash(tags: ImageTags): string {
  const values = IMAGE_TAGS.map((tag) => tags[tag]);
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}

/** Returns true if an image with these tags was made by the upload with those. A missing tag is no match. */
export function isImageOfUpload(tags: Readonly<Record<string, string>>, upload: ImageTags): boolean {
  return IMAGE_TAGS.every((tag) => tags[tag] !== undefined && tags[tag] === upload[tag]);
}

export interface ImageUploadRequest extends Call {
  /** Name of the disk image in the configuration. */
  readonly image: string;
  /** Name that it shall have in the cloud. */
  readonly externalName: string;
  /** The file; to be streamed, never read whole. */
  readonly file: string;
  readonly format: string;
  /** Hex; null when unknown. */
  readonly md5: string | null;
  readonly sha256: string | null;
  /** Properties from the configuration. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The identity of the image, to be put on it at its creation, and on whatever else the upload makes. */
  readonly tags: ImageTags;
  /**
   * Reports the bytes sent so far. A driver that waits for the cloud to process the data repeats its last report at each
   * answer: the builder ends an upload without a report for `image-upload-idle-timeout`.
   */
  progress(sentBytes: number, totalBytes: number): void;
}

export interface ListedImage {
  readonly externalId: ExternalId;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly ready: boolean;
  readonly properties?: JsonObject;
}

export interface ImageManager {
  /**
   * Resolves with the external id once the image can be used. Leaves nothing behind when it rejects, if it can: the
   * frameworks delete the image that carries all tags of the upload, the driver whatever else it made.
   */
  uploadImage(upload: ImageUploadRequest): Promise<ExternalId>;
  /** Resolves once the image is gone; an image that does not exist is a success. */
  deleteImage(externalId: ExternalId, call: Call): Promise<void>;
  /**
   * All images of the account that carry our tags, of all providers; complete or rejected. The builder takes an image that
   * was listed before, and is missing from two lists, for deleted.
   */
  listImages(call: Call): Promise<readonly ListedImage[]>;
}
