/** Decompresses an image and converts it to the formats of clouds. */

import { execFile, spawn } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { errorCodeOf, isJsonObject, reasonOf, type JsonObject } from '@nodepool/core';
import { BuildFailedError } from '../disk-image-creator.js';
import { boundedBytes, checkSize, checkSpace } from './bounded-bytes.js';
import { sourceFailed } from './source-failure.js';

const execute = promisify(execFile);

/** Programs that decompress their input to their output, by extension; gzip needs none. */
const DECOMPRESSORS: Readonly<Record<string, string | undefined>> = {
  gz: undefined,
  xz: 'xz',
  zst: 'zstd',
  bz2: 'bzip2',
};

/** Options of qemu-img by format; those of qcow2 are what diskimage-builder's images have, for old hypervisors. */
const CONVERSIONS: Readonly<Record<string, readonly string[]>> = {
  raw: ['-O', 'raw'],
  qcow2: ['-O', 'qcow2', '-o', 'compat=0.10'],
  vhd: ['-O', 'vpc', '-o', 'subformat=fixed,force_size=on'],
  vhdx: ['-O', 'vhdx'],
  vmdk: ['-O', 'vmdk', '-o', 'subformat=streamOptimized'],
};

/** The parts of the name of an image's file. */
export interface ImageName {
  /** The extension of the compression; undefined if the file is not compressed. */
  readonly compression: string | undefined;
  /** The extension before it; undefined if there is none. */
  readonly format: string | undefined;
}

/** Returns the parts of a file's name, e.g. of `debian.qcow2.xz`. */
export function parseImageName(name: string): ImageName {
  const parts = name.split('.').slice(1);
  const last = parts.at(-1)?.toLowerCase();
  const isCompressed = last !== undefined && Object.hasOwn(DECOMPRESSORS, last);
  return { compression: isCompressed ? last : undefined, format: (isCompressed ? parts.at(-2) : last)?.toLowerCase() };
}

export async function decompress(
  { from, compression, maxBytes }: { readonly from: string; readonly compression: string; readonly maxBytes: number },
  to: string,
  signal: AbortSignal,
): Promise<void> {
  const bounded = boundedBytes(`the decompressed image`, to, { maxBytes });
  const program = DECOMPRESSORS[compression];
  const output = createWriteStream(to);
  try {
    if (program === undefined) {
      await pipeline(createReadStream(from), createGunzip(), bounded, output, { signal });
      return;
    }
    const child = spawn(program, ['-dc', '--', from], { stdio: ['ignore', 'pipe', 'pipe'], signal });
    let said = '';
    child.stderr.on('data', (piece: Buffer) => (said = (said + piece.toString('utf8')).slice(-1000)));
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    const [status] = await Promise.all([ended, pipeline(child.stdout, bounded, output, { signal })]);
    if (status !== 0) throw new Error(said.trim());
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BuildFailedError) throw error;
    const hint = errorCodeOf(error) === 'ENOENT' ? `; install ${program ?? ''}` : '';
    throw sourceFailed(`${from} cannot be decompressed: ${reasonOf(error)}${hint}`, error);
  }
}

async function infoOf(file: string, driver: string, signal: AbortSignal): Promise<JsonObject> {
  const { stdout } = await execute('qemu-img', ['info', '-f', driver, '--output=json', file], { signal });
  const info: unknown = JSON.parse(stdout);
  return isJsonObject(info) ? info : {};
}

/**
 * Returns true if the contents of an image are also in other files. The name of such a file is in the image, so that a
 * conversion could copy any file of the builder's host into an image.
 */
function refersToFiles(info: JsonObject, file: string): boolean {
  const specific = isJsonObject(info['format-specific']) ? info['format-specific']['data'] : undefined;
  const data = isJsonObject(specific) ? specific : {};
  const extents = Array.isArray(data['extents']) ? data['extents'] : [];
  const isElsewhere = extents.some((extent) => isJsonObject(extent) && extent['filename'] !== file);
  return info['backing-filename'] !== undefined || data['data-file'] !== undefined || isElsewhere;
}

/** Converts an image. Rejects with `BuildFailedError` if qemu-img cannot. */
export async function convert(
  { from, format: source, maxBytes }: { readonly from: string; readonly format: string; readonly maxBytes: number },
  { to, format: target }: { readonly to: string; readonly format: string },
  signal: AbortSignal,
): Promise<void> {
  const options = CONVERSIONS[target];
  if (options === undefined || CONVERSIONS[source] === undefined) {
    throw sourceFailed(`an image in format ${source} cannot be converted to ${target}: provide it in that format`);
  }
  const sourceDriver = source === 'vhd' ? 'vpc' : source;
  try {
    const info = await infoOf(from, sourceDriver, signal);
    if (refersToFiles(info, from)) {
      throw sourceFailed('the image refers to other files: provide one without backing file');
    }
    checkSize('the disk in the image', Number(info['virtual-size'] ?? 0), maxBytes);
    await checkSpace(`the conversion to ${target}`, to, Number(info['actual-size'] ?? 0));
    await execute('qemu-img', ['convert', '-f', sourceDriver, ...options, from, to], { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BuildFailedError) throw error;
    const hint = errorCodeOf(error) === 'ENOENT' ? '; install qemu-img (Debian: qemu-utils)' : '';
    throw sourceFailed(`an image cannot be converted from ${source} to ${target}: ${reasonOf(error)}${hint}`, error);
  }
}
