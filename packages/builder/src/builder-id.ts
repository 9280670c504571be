/** The id of a builder: a uuid in `builder_id.txt` of its images-dir, which says whose disk has the files of a build. */

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCodeOf, reasonOf, type RandomSource } from '@nodepool/core';

const NAME = 'builder_id.txt';

/** `images-dir` is not there, or cannot be written. */
export class ImagesDirError extends Error {
  readonly code = 'images-dir';
}

/** The id that the folder has, or a new one that it has from now on; makes the folder. Rejects with `ImagesDirError`. */
export async function builderIdOf(folder: string, random: RandomSource): Promise<string> {
  const file = join(folder, NAME);
  try {
    await mkdir(folder, { recursive: true });
    const known = (await readOptional(file))?.trim();
    if (known !== undefined && known !== '') return known;
    const id = dashed(random.uuidHex());
    // Under its name it is there as a whole or not at all.
    await writeFile(`${file}.tmp`, id);
    await rename(`${file}.tmp`, file);
    return id;
  } catch (error) {
    throw new ImagesDirError(
      `images-dir ${folder} cannot be used: ${reasonOf(error)}; it must be a folder that this user can write`,
      { cause: error },
    );
  }
}

async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** A uuid as it is usually written. */
function dashed(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
