/** `nodepool image-delete`: marks an upload for deletion by a builder. */

import type { UploadRef } from '@nodepool/store';
import { CommandError, type StoreContext } from '../command-context.js';

export interface ImageDeleteOptions {
  readonly provider: string;
  readonly image: string;
  readonly uploadId: string;
  readonly buildId: string;
}

/** Marks the upload. Rejects with `CommandError` if it does not exist or is in progress. */
export async function imageDelete(context: StoreContext, options: ImageDeleteOptions): Promise<void> {
  const { store, out, interrupted } = context;
  const { image, buildId: build, provider } = options;
  const ref: UploadRef = { image, build, provider, id: options.uploadId.padStart(10, '0') };
  const what = `upload ${ref.id} of build ${build} of image ${image} to provider ${provider}`;
  const upload = store.images.upload(ref);
  if (upload === undefined) {
    throw new CommandError(`there is no ${what}; \`nodepool image-list\` lists the existing ones`);
  }
  if (upload.state === 'uploading') throw new CommandError(`${what} is in progress; wait until it has ended`);
  const handle = await store.images.tryLockUpload(ref, { change: { state: 'deleting' }, signal: interrupted });
  if (handle === undefined) {
    throw new CommandError(`${what} is locked by a builder at the moment; see \`nodepool image-list\``);
  }
  await handle.release();
  out.note(`${what} will be deleted by a builder`);
}
