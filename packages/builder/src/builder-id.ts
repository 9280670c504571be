/**
 * The id of a builder: a uuid in `builder_id.txt` of its images-dir. It identifies the disk that has the files of a
 * build.
 */

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCodeOf, reasonOf, type RandomSource } from '@nodepool/core';

const NAME = 'builder_id.txt';

/** `images-dir` does not exist or is not writable. */
export class ImagesDirError extends Error {
  readonly code = 'images-dir';
}

/** Resolves with the id in the folder; creates the folder and the id if missing. Rejects with `ImagesDirError`. */
export async function builderIdOf(folder: string, random: RandomSource): Promise<string> {
  const file = join(folder, NAME);
  try {
    await mkdir(folder, { recursive: true });
    const known = (await readOptional(file))?.trim();
    if (known !== undefined && known !== '') return known;
    const id = dashed(random.uuidHex());
    // Written under a temporary name, so that the file is never incomplete.
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

/** Formats a uuid with dashes. */
function dashed(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
