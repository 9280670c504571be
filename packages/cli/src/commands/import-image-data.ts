/** `nodepool import-image-data FILE`: restores what `export-image-data` backed up. */

import { readFile } from 'node:fs/promises';
import { importImageData as importData, parseImageData } from '@nodepool/store';
import { reasonOf } from '@nodepool/core';
import { RefusedError, type StoreContext } from '../command-context.js';

/** Rejects with `RefusedError` when the file cannot be read, and with `ImageDataError` when it cannot be imported. */
export async function importImageData({ store, out, interrupted }: StoreContext, file: string): Promise<void> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new RefusedError(`${file} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  const data = parseImageData(text);
  const made = await importData(store.zooKeeper, data, { signal: interrupted });
  const there = data.size - made.length;
  out.note(`${made.length} records of images are restored${there === 0 ? '' : `, ${there} were there already`}`);
}
