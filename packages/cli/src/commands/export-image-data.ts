/** `nodepool export-image-data FILE`: backs up the records of images. */

import { exportImageData as exportData } from '@nodepool/store';
import { reasonOf } from '@nodepool/core';
import { CommandError, type StoreContext } from '../command-context.js';
import { replaceFile } from '../replace-file.js';

/** Writes the records, replacing the file once all are written. Rejects with `CommandError` if it cannot be written. */
export async function exportImageData({ store, out, interrupted }: StoreContext, file: string): Promise<void> {
  const data = await exportData(store.zooKeeper, { signal: interrupted });
  try {
    await replaceFile(file, JSON.stringify(Object.fromEntries(data)));
  } catch (error) {
    throw new CommandError(`${file} cannot be written: ${reasonOf(error)}`, { cause: error });
  }
  out.note(`Saved records of images: ${data.size}, in ${file}`);
}
