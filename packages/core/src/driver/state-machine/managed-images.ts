/** The image manager that a provider offers, wrapping the driver's. Deletes the images of failed uploads. */

import type { ExternalId } from '../../model/node.js';
import type { Clock } from '../../runtime/clock.js';
import type { Call } from '../call.js';
import { logCloudDeletion } from '../cloud-deletion.js';
import { toDriverError } from '../errors.js';
import { isImageOfUpload, type ImageManager, type ImageUploadRequest, type ListedImage } from '../images.js';

/** Time limit for deleting the image of a failed upload, in milliseconds. */
const DISCARD_TIMEOUT_MS = 50_000;

export interface ManagedImagesOptions {
  readonly images: ImageManager;
  /** Returns the clock. Called on demand, since a provider that was not started has no clock. */
  readonly clock: () => Clock;
  /** Makes a call with a time limit, and ends it when the provider is stopped. */
  readonly call: <T>(what: string, call: Call, work: (call: Call) => Promise<T>) => Promise<T>;
}

export class ManagedImages implements ImageManager {
  constructor(private readonly options: ManagedImagesOptions) {}

  async uploadImage(upload: ImageUploadRequest): Promise<ExternalId> {
    try {
      return await this.options.images.uploadImage(upload);
    } catch (error) {
      await this.discard(upload, `its upload failed: ${toDriverError(error).message}`);
      throw error;
    }
  }

  deleteImage(externalId: ExternalId, call: Call): Promise<void> {
    return this.options.images.deleteImage(externalId, call);
  }

  listImages(call: Call): Promise<readonly ListedImage[]> {
    return this.options.images.listImages(call);
  }

  /** Deletes the image of a failed upload, found by all its tags: the answer with its id may be lost. Never rejects. */
  private async discard({ tags, log }: ImageUploadRequest, because: string): Promise<void> {
    const { images, clock, call } = this.options;
    const own: Call = {
      signal: new AbortController().signal,
      deadline: clock().monotonic() + DISCARD_TIMEOUT_MS,
      log,
    };
    try {
      await call('deleting what a failed upload left', own, async (guarded) => {
        for (const { externalId, name, tags: found } of await images.listImages(guarded)) {
          if (!isImageOfUpload(found, tags)) continue;
          logCloudDeletion(log, { kind: 'image', externalId, name }, because);
          await images.deleteImage(externalId, guarded);
        }
      });
    } catch (error) {
      log.warn('Could not delete the remains of a failed upload; cleanup will delete them as leaked', {
        error,
      });
    }
  }
}
