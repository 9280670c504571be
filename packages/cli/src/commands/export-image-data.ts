/** `nodepool export-image-data FILE`: backs up the records of images. */

import { exportImageData as exportData } from '@nodepool/store';
import type { StoreContext } from '../command-context.js';
import { replaceFile } from '../replace-file.js';

/** Writes the records, replacing the file once all are written. Rejects with `CommandError` if it cannot be written. */
export async function exportImageData({ store, out, interrupted }: StoreContext, file: string): Promise<void> {
  const data = await exportData(store.zooKeeper, { signal: interrupted });
  await replaceFile(file, JSON.stringify(Object.fromEntries(data)));
  out.note(`Saved records of images: ${data.size}, in ${file}`);
}
