/** Reads the file with the own settings of a program, which is checked like `nodepool.yaml`. */

import { readFile } from 'node:fs/promises';
import { formatProblem, readBySchema, type FileForm } from '@nodepool/config';
import { fileFaultOf } from '@nodepool/core';

/** The file is not usable; the message names every problem with its place. */
export class SettingsError extends Error {
  readonly code = 'settings';
  constructor(
    file: string,
    readonly problems: readonly string[],
    cause?: unknown,
  ) {
    super(`the settings ${file} cannot be used:\n${problems.map((line) => `  ${line}`).join('\n')}`, { cause });
    this.name = 'SettingsError';
  }
}

/** Reads a file. Rejects with `SettingsError`. */
export async function readSettingsFile<T>(file: string, form: FileForm<T>): Promise<T> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new SettingsError(
      file,
      [`it cannot be read: ${fileFaultOf(error)}; check the path and its permissions`],
      error,
    );
  }
  const result = await readBySchema(text, file, () => form);
  if (!result.ok) throw new SettingsError(file, result.problems.map(formatProblem));
  return result.value;
}
