/**
 * The id of a builder: a uuid in `builder_id.txt` of its images-dir. It identifies the disk that has the files of a
 * build. Beside it, `installation_id.txt` names the installation whose records the files belong to.
 */

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCodeOf, fileFaultOf, type RandomSource } from '@nodepool/core';

const NAME = 'builder_id.txt';
/** Operators remove this file to assign the files to another installation. */
export const INSTALLATION_FILE = 'installation_id.txt';

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
    await writeComplete(file, id);
    return id;
  } catch (error) {
    throw new ImagesDirError(
      `images-dir ${folder} cannot be used: ${fileFaultOf(error, 'output')}; it must be a folder that this user can write`,
      { cause: error },
    );
  }
}

/** Resolves with the id of the installation in the folder; undefined if there is none. */
export async function readInstallation(folder: string): Promise<string | undefined> {
  const known = (await readOptional(join(folder, INSTALLATION_FILE)))?.trim();
  return known === '' ? undefined : known;
}

export function writeInstallation(folder: string, id: string): Promise<void> {
  return writeComplete(join(folder, INSTALLATION_FILE), id);
}

/** Writes under a temporary name, so that the file is never incomplete. */
async function writeComplete(file: string, text: string): Promise<void> {
  await writeFile(`${file}.tmp`, text);
  await rename(`${file}.tmp`, file);
}

async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function dashed(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
