import { createHash } from 'node:crypto';
import type { JsonObject } from '../model/json.js';
import type { ExternalId } from '../model/node.js';
import type { Call } from './call.js';

/** Tags of an image. Only all tags together identify an image: upload ids are sequences per build and provider. */
export const IMAGE_TAGS = [
  'nodepool_installation',
  'nodepool_provider_name',
  'nodepool_image_name',
  'nodepool_build_id',
  'nodepool_upload_id',
  'nodepool_image_format',
] as const;

export type ImageTags = Readonly<Record<(typeof IMAGE_TAGS)[number], string>>;

/** Returns a hash of all tags of an image, 16 hex digits, for clouds that identify images and files by their names. */
export function imageTagsHash(tags: ImageTags): string {
  const values = IMAGE_TAGS.map((tag) => tags[tag]);
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16);
}

/** Returns true if an image with these tags belongs to the upload. A missing tag never matches. */
export function isImageOfUpload(tags: Readonly<Record<string, string>>, upload: ImageTags): boolean {
  return IMAGE_TAGS.every((tag) => tags[tag] !== undefined && tags[tag] === upload[tag]);
}

export interface ImageUploadRequest extends Call {
  /** Name of the disk image in the configuration. */
  readonly image: string;
  /** Name for the image in the cloud. */
  readonly externalName: string;
  /** Path of the file, which the driver must stream rather than read into memory. */
  readonly file: string;
  readonly format: string;
  /** MD5 digest in hex; null if unknown. */
  readonly md5: string | null;
  readonly sha256: string | null;
  /** Image properties from the configuration. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Tags that identify the image. The image and every other resource of the upload must carry them from creation. */
  readonly tags: ImageTags;
  /**
   * Reports the bytes sent so far. While the cloud processes the data, a driver repeats its last report after each
   * poll: the builder aborts an upload without a report for `image-upload-idle-timeout`.
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
   * Resolves with the external id once the image is usable. On failure, the driver deletes the other resources of the
   * upload if it can; the frameworks delete the image that carries all tags of the upload.
   */
  uploadImage(upload: ImageUploadRequest): Promise<ExternalId>;
  /** Resolves once the image is deleted. Treats an image that does not exist as deleted. */
  deleteImage(externalId: ExternalId, call: Call): Promise<void>;
  /**
   * Resolves with all images of the account that carry Nodepool's tags, for all providers. Rejects rather than
   * returning a partial list: the builder treats an image that is missing from two consecutive lists as deleted.
   */
  listImages(call: Call): Promise<readonly ListedImage[]>;
}
