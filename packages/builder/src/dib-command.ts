/**
 * The command line and the environment of a build. Elements rely on both, so they are those of the Python builder
 * (see the environment of image builds in its documentation).
 */

import { splitWords } from '@nodepool/config';
import type { DiskImageConfig } from '@nodepool/core';
import { join } from 'node:path';

/** Folder of this package; replaces `%p` in `dib-cmd`. */
const PACKAGE_FOLDER = join(__dirname, '..');

export interface DibCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface DibCommandOptions {
  readonly image: DiskImageConfig;
  readonly formats: readonly string[];
  readonly elementsDir: string | undefined;
  /** Path of the output files, without extension. */
  readonly output: string;
}

/** Returns the command. Throws an `Error` if `dib-cmd` is not a valid command. */
export function dibCommand({ image, formats, elementsDir, output }: DibCommandOptions): DibCommand {
  const [command, ...first] = splitWords(image.dibCmd).map((word) => word.replaceAll('%p', PACKAGE_FOLDER));
  if (command === undefined) throw new Error(`dib-cmd of disk image ${image.name} is empty`);
  const args = [...first, '-x', '-t', formats.join(','), '--checksum', '--no-tmpfs'];
  // Some hypervisors support only the first version of the format.
  if (formats.includes('qcow2')) args.push('--qemu-img-options', 'compat=0.10');
  args.push('-o', output, ...image.elements.flatMap((element) => splitWords(element)));
  const env: Record<string, string> = {
    DIB_RELEASE: image.release ?? '',
    DIB_IMAGE_NAME: image.name,
    DIB_IMAGE_FILENAME: output,
  };
  if (elementsDir !== undefined) env['ELEMENTS_PATH'] = elementsDir;
  return { command, args, env: { ...env, ...image.envVars } };
}
