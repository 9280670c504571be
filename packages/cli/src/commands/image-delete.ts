/** `nodepool image-delete`: has a builder delete an upload from its provider. */

import type { UploadRef } from '@nodepool/store';
import { RefusedError, type StoreContext } from '../command-context.js';

export interface ImageDeleteOptions {
  readonly provider: string;
  readonly image: string;
  readonly uploadId: string;
  readonly buildId: string;
}

/** Rejects with `RefusedError` when there is no such upload, or when it is in progress. */
export async function imageDelete(context: StoreContext, options: ImageDeleteOptions): Promise<void> {
  const { store, out, interrupted } = context;
  const { image, buildId: build, provider } = options;
  const ref: UploadRef = { image, build, provider, id: options.uploadId.padStart(10, '0') };
  const what = `upload ${ref.id} of build ${build} of image ${image} to provider ${provider}`;
  const upload = store.images.upload(ref);
  if (upload === undefined) {
    throw new RefusedError(`there is no ${what}; \`nodepool image-list\` shows those that there are`);
  }
  if (upload.state === 'uploading') throw new RefusedError(`${what} is in progress; wait until it has ended`);
  const handle = await store.images.tryLockUpload(ref, { change: { state: 'deleting' }, signal: interrupted });
  if (handle === undefined) {
    throw new RefusedError(`${what} is being worked on by a builder in this moment; see \`nodepool image-list\``);
  }
  await handle.release();
  out.note(`${what} will be deleted by a builder`);
}
