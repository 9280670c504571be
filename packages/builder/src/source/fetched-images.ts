/**
 * Creates the files of a build from a file that another program makes: downloads or links it, compares its checksum,
 * decompresses it and converts it to the formats of the clouds.
 */

import { createHash } from 'node:crypto';
import { createReadStream, type Stats } from 'node:fs';
import { copyFile, constants, link, lstat, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorCodeOf, linkSignals, reasonOf, type Clock, type ImageSourceConfig } from '@nodepool/core';
import { BuildFailedError } from '../disk-image-creator.js';
import { checkSize, checkSpace } from './bounded-bytes.js';
import { convert, decompress, parseImageName } from './convert.js';
import { discard, download, downloadText } from './download.js';
import type { ImageSources, SourceJob, SourceLeftover } from './image-sources.js';
import { sourceFailed } from './source-failure.js';

/** Files of this class in images-dir, which a killed builder leaves. */
const LEFTOVER = /^\.source-(?<image>.+)\.(?<kind>part|part\.json|image)$/;
const SHA256 = /^[0-9a-f]{64}$/i;

export class FetchedImages implements ImageSources {
  constructor(
    private readonly clock: Clock,
    private readonly imagesDir: string,
  ) {}

  async identity({ path, sha256 }: ImageSourceConfig): Promise<string | undefined> {
    if (path === undefined) return sha256 !== undefined && SHA256.test(sha256) ? checksumIdentity(sha256) : undefined;
    try {
      const { ino, size, mtimeMs } = await stat(path);
      return `file:${ino}-${size}-${mtimeMs}`;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  async fetch(job: SourceJob): Promise<string | undefined> {
    const limited = linkSignals(job.signal);
    const timer = this.clock.schedule(job.timeoutMs, () =>
      limited.abort(
        new BuildFailedError('timeout', `the image took longer than build-timeout (${job.timeoutMs / 1000} s)`),
      ),
    );
    try {
      return await this.fetchWithin({ ...job, signal: limited.signal });
    } catch (error) {
      limited.signal.throwIfAborted();
      throw error instanceof BuildFailedError
        ? error
        : sourceFailed(`the image cannot be read: ${reasonOf(error)}`, error);
    } finally {
      timer.cancel();
      limited.unlink();
    }
  }

  private async fetchWithin(job: SourceJob): Promise<string | undefined> {
    const { source, build, signal } = job;
    const stored = join(this.imagesDir, `.source-${build.image}.part`);
    const identity = await this.identity(source);
    const expected = await this.expectedChecksum(source, signal);
    const { path, url, maxBytes } = source;
    if (path !== undefined) await takeFile(path, stored, maxBytes);
    else if (url !== undefined && expected !== undefined) {
      await download({ url, sha256: expected, file: stored, maxBytes, clock: this.clock, signal, log: job.log });
    }
    if (expected !== undefined) {
      const found = await checksumOf(stored, signal);
      if (found !== expected) {
        await discard(stored);
        throw sourceFailed(`${source.url ?? source.path ?? ''} has the checksum ${found}; expected ${expected}`);
      }
    }
    await this.createFiles(job, stored);
    await discard(stored);
    return identity ?? (expected === undefined ? undefined : checksumIdentity(expected));
  }

  private async createFiles({ source, build, formats, output, signal }: SourceJob, stored: string): Promise<void> {
    const { compression, format = source.format } = parseImageName(nameOf(source));
    const known = source.format ?? format;
    if (known === undefined) throw sourceFailed('the format of the image is unknown; set `format` of its source');
    let image = stored;
    const plain = join(this.imagesDir, `.source-${build.image}.image`);
    try {
      if (compression !== undefined) {
        await decompress({ from: stored, compression, maxBytes: source.maxBytes }, plain, signal);
        image = plain;
      }
      for (const target of formats.filter((each) => each !== known)) {
        const from = { from: image, format: known, maxBytes: source.maxBytes };
        await convert(from, { to: `${output}.${target}`, format: target }, signal);
      }
      if (formats.includes(known)) await rename(image, `${output}.${known}`);
    } finally {
      await rm(plain, { force: true });
    }
  }

  async leftovers(): Promise<readonly SourceLeftover[]> {
    const found: SourceLeftover[] = [];
    for (const name of await readdir(this.imagesDir)) {
      const { image, kind } = LEFTOVER.exec(name)?.groups ?? {};
      if (image === undefined || kind === undefined) continue;
      const path = join(this.imagesDir, name);
      const stats = await statOf(path);
      if (stats?.isFile() !== true) continue;
      found.push({ image, path, isResumable: kind !== 'image', changedMs: stats.mtimeMs });
    }
    return found;
  }

  async remove({ path }: SourceLeftover): Promise<void> {
    await rm(path, { force: true });
  }

  /** Resolves with the expected checksum; undefined if none is configured. */
  private async expectedChecksum(source: ImageSourceConfig, signal: AbortSignal): Promise<string | undefined> {
    const { sha256 } = source;
    if (sha256 === undefined) return undefined;
    if (SHA256.test(sha256)) return sha256.toLowerCase();
    const lines = (await downloadText(sha256, signal)).split('\n').map((line) => line.trim().split(/\s+\*?/));
    const name = nameOf(source);
    // A file for one image may have no name.
    const [digits = ''] = lines.find((words) => words[1] === name) ?? (lines[1]?.[0] ? [] : (lines[0] ?? []));
    if (!SHA256.test(digits)) throw sourceFailed(`${sha256} has no SHA-256 checksum of ${name}`);
    return digits.toLowerCase();
  }
}

/** Resolves with the facts of a file, not following a link; undefined if it was deleted meanwhile. */
async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function checksumIdentity(sha256: string): string {
  return `sha256:${sha256.toLowerCase()}`;
}

function nameOf({ url, path }: ImageSourceConfig): string {
  return basename(url === undefined ? (path ?? '') : new URL(url).pathname);
}

/** Keeps the present file under another name, so that a file that is renamed to its path meanwhile does not mix in. */
async function takeFile(path: string, stored: string, maxBytes: number): Promise<void> {
  await discard(stored);
  try {
    checkSize(path, (await stat(path)).size, maxBytes);
    // A link to a symbolic link would point to other contents, or to none, later.
    await link(await realpath(path), stored);
  } catch (error) {
    if (error instanceof BuildFailedError) throw error;
    if (errorCodeOf(error) === 'ENOENT') throw sourceFailed(`there is no file ${path}`, error);
    // Another file system, or a file of another user.
    await checkSpace(`the copy of ${path}`, stored, (await stat(path)).size);
    await copyFile(path, stored, constants.COPYFILE_FICLONE);
  }
}

async function checksumOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const pieces = createReadStream(file, { highWaterMark: 1 << 20, signal }) as AsyncIterable<Buffer>;
  for await (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}
