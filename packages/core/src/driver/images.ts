/** Image management, for drivers of clouds that take disk images. */

import type { JsonObject } from '../model/json.js';
import type { ExternalId } from '../model/node.js';
import type { Call } from './api.js';

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
  /** To be put on the image at its creation: `nodepool_build_id`, `nodepool_upload_id`, `nodepool_provider_name`. */
  readonly tags: Readonly<Record<string, string>>;
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
  /** Resolves with the external id once the image can be used. Leaves nothing behind when it rejects, if it can. */
  uploadImage(upload: ImageUploadRequest): Promise<ExternalId>;
  /** Resolves once the image is gone; an image that does not exist is a success. */
  deleteImage(externalId: ExternalId, call: Call): Promise<void>;
  /**
   * All images of the account that carry our tags, of all providers; complete or rejected. The builder takes an image that
   * was listed before, and is missing from two lists, for deleted.
   */
  listImages(call: Call): Promise<readonly ListedImage[]>;
}
