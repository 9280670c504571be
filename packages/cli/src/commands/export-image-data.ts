/** `nodepool export-image-data FILE`: backs up the records of images. */

import { writeFile } from 'node:fs/promises';
import { exportImageData as exportData } from '@nodepool/store';
import { reasonOf } from '@nodepool/core';
import { RefusedError, type StoreContext } from '../command-context.js';

/** Writes the records to the file. Rejects with `RefusedError` if it cannot be written. */
export async function exportImageData({ store, out, interrupted }: StoreContext, file: string): Promise<void> {
  const data = await exportData(store.zooKeeper, { signal: interrupted });
  try {
    await writeFile(file, JSON.stringify(Object.fromEntries(data)), { mode: 0o600 });
  } catch (error) {
    throw new RefusedError(`${file} cannot be written: ${reasonOf(error)}`, { cause: error });
  }
  out.note(`${data.size} records of images are in ${file}`);
}
