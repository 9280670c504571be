/** Drivers that violate the rules about disk images and look-alikes. */

import { IMAGE_TAGS, NotFoundError, type ExternalId } from '@nodepool/core';
import { images, leavesImages, deletesByNodeId, discardsBy } from '../changed-drivers.js';
import type { Defect } from './defect.js';

export const imagesDefects: Readonly<Record<string, Defect>> = {
  'image.upload': {
    changes: images((manager) => ({
      uploadImage: (upload) => manager.uploadImage({ ...upload, tags: { ...upload.tags, nodepool_build_id: '' } }),
    })),
    says: /the tag nodepool_build_id/,
  },
  'image.streamed': {
    changes: images((manager) => ({
      uploadImage: (upload) =>
        manager.uploadImage({
          ...upload,
          progress: (sent, total) => {
            if (sent === total) upload.progress(sent, total);
          },
        }),
    })),
    says: /at the end only/,
  },
  'image.progress-repeated': {
    changes: images((manager) => ({
      uploadImage: (upload) => {
        let last = -1;
        const progress = (sent: number, total: number): void => {
          if (sent > last) upload.progress(sent, total);
          last = sent;
        };
        return manager.uploadImage({ ...upload, progress });
      },
    })),
    says: /did not call `progress` for \d+ s while the cloud processed the image/,
  },
  'image.delete': {
    changes: images((manager) => {
      const deleted = new Set<ExternalId>();
      return {
        async deleteImage(id, call) {
          if (deleted.has(id)) throw new NotFoundError('there is no such image');
          deleted.add(id);
          await manager.deleteImage(id, call);
        },
      };
    }),
    says: /no such image/,
  },
  'image.list': {
    changes: images((manager) => ({
      listImages: async (call) =>
        (await manager.listImages(call)).filter(({ tags }) => tags['nodepool_provider_name'] === 'acme-1'),
    })),
    says: /is not in the list/,
  },
  'image.upload-refused': { changes: leavesImages(), says: /images after an upload that failed/ },
  'image.upload-aborted': {
    changes: images((manager) => ({
      uploadImage: (upload) => manager.uploadImage({ ...upload, signal: new AbortController().signal }),
    })),
    says: /an upload that was aborted failed with the code "timeout" instead of "aborted"/,
  },
  'image.upload-deadline': {
    changes: images((manager) => ({ uploadImage: (upload) => manager.uploadImage({ ...upload, deadline: Infinity }) })),
    says: /has not ended|until an upload with a deadline/,
  },
  'image.checksum': {
    changes: images((manager) => ({ uploadImage: (upload) => manager.uploadImage({ ...upload, sha256: null }) })),
    says: /did not fail/,
  },
  'image.launch': {
    changes: { client: ({ create }) => ({ create: (tags, zone, _image, call) => create(tags, zone, 'debian', call) }) },
    says: /from an image that does not exist/,
  },
  'lookalike.node': { changes: deletesByNodeId(), says: /the instance of another installation was deleted/ },
  'lookalike.upload-refused': {
    changes: discardsBy(['nodepool_upload_id', 'nodepool_image_name', 'nodepool_provider_name']),
    says: /the image of another installation did not survive an upload that failed/,
  },
  'lookalike.upload-aborted': {
    changes: discardsBy(IMAGE_TAGS.filter((tag) => tag !== 'nodepool_image_format')),
    says: /the image of another format did not survive an upload that was aborted/,
  },
};
