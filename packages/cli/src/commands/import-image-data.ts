/** `nodepool import-image-data FILE`: restores a backup of `export-image-data`. */

import { readFile } from 'node:fs/promises';
import { importImageData as importData, parseImageData } from '@nodepool/store';
import { fileFaultOf, reasonOf } from '@nodepool/core';
import { CommandError, type StoreContext } from '../command-context.js';

/** Restores the records. Rejects with `CommandError` if it is no backup, `ImageDataError` if the import fails. */
export async function importImageData({ store, out, interrupted }: StoreContext, file: string): Promise<void> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError(
      `${file} cannot be read: ${fileFaultOf(error)}; name a file that export-image-data has written`,
      { cause: error },
    );
  }
  const data = parse(text, file);
  const made = await importData(store.zooKeeper, data, { signal: interrupted });
  const there = data.size - made.length;
  out.note(
    `Restored records of images: ${made.length}${there === 0 ? '' : `; records that existed already: ${there}`}`,
  );
}

function parse(text: string, file: string): ReturnType<typeof parseImageData> {
  try {
    return parseImageData(text);
  } catch (error) {
    throw new CommandError(`${file}: ${reasonOf(error)}`, { cause: error });
  }
}
