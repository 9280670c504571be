/** Downloads a file, and continues a download that was interrupted, also by the death of the builder. */

import { createWriteStream } from 'node:fs';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { answerText, errorCodeOf, isJsonObject, reasonOf, sleep, type Clock, type Logger } from '@nodepool/core';
import { IdleLimit } from '../idle-limit.js';
import { BuildFailedError } from '../disk-image-creator.js';
import { boundedBytes, checkSize, checkSpace } from './bounded-bytes.js';
import { sourceFailed } from './source-failure.js';

/** Time (ms) without data after which a connection is given up. */
const IDLE_MS = 120_000;
/** Delays (ms) before the download is continued after a failure. */
const RETRIES_MS = [1000, 5000, 15_000, 60_000, 60_000] as const;
/** Limit (bytes) of a file with a checksum. */
const MAX_CHECKSUM_FILE = 1 << 20;

export interface Download {
  readonly url: string;
  /** The expected checksum, which identifies the contents. */
  readonly sha256: string;
  readonly file: string;
  /** Limit of the size. */
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** The facts about a file that is partly downloaded. */
interface Part {
  readonly bytes: number;
  /** The validator of the server; a file without one cannot be continued. */
  readonly validator: string | undefined;
}

/** Resolves once the file is complete. It is not verified. */
export async function download(task: Download): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await receive(task);
      return;
    } catch (error) {
      task.signal.throwIfAborted();
      // A partial file would keep the disk full, for other images too.
      if (error instanceof BuildFailedError) {
        await discard(task.file);
        throw error;
      }
      if (errorCodeOf(error) === 'ENOSPC') {
        await discard(task.file);
        throw sourceFailed(`${task.url} cannot be downloaded: the disk is full`, error);
      }
      const waitMs = RETRIES_MS[attempt];
      if (waitMs === undefined || (error instanceof RefusedDownload && error.isFinal)) {
        throw sourceFailed(`${task.url} cannot be downloaded: ${reasonOf(error)}`, error);
      }
      task.log.warn('A download was interrupted; continuing it', { url: task.url, error, seconds: waitMs / 1000 });
      await sleep(task.clock, waitMs, task.signal);
    }
  }
}

/** Resolves with the text of a small file. */
export async function downloadText(url: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(url, { signal });
  if (url.startsWith('https:') && !answer.url.startsWith('https:'))
    throw sourceFailed(`${url} leads to ${answer.url}, which other hosts can change on the way`);
  if (!answer.ok) throw sourceFailed(`${url} cannot be downloaded: the server answers ${answer.status}`);
  try {
    return await answerText(answer.body, { maxBytes: MAX_CHECKSUM_FILE, signal });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw sourceFailed(`${url} is too large for a file with a checksum`, error);
  }
}

class RefusedDownload extends Error {
  constructor(readonly status: number) {
    super(`the server answers ${status}`);
  }

  /** True if a repetition cannot help. */
  get isFinal(): boolean {
    return this.status >= 400 && this.status < 500 && this.status !== 408 && this.status !== 429;
  }
}

async function receive({ url, sha256, file, maxBytes, clock, signal, log }: Download): Promise<void> {
  const part = await knownPart(file, url, sha256);
  const isContinued = part.bytes > 0 && part.validator !== undefined;
  const range =
    part.validator !== undefined && isContinued ? { range: `bytes=${part.bytes}-`, 'if-range': part.validator } : {};
  const idle = new IdleLimit(clock, IDLE_MS);
  try {
    // Without this header, a server may compress what it sends, and the checksum would differ.
    const headers = { 'accept-encoding': 'identity', ...range };
    const stop = AbortSignal.any([signal, idle.signal]);
    const answer = await fetch(url, { headers, signal: stop });
    if (answer.status === 416 && isContinued) {
      // The file was complete, or has changed: the checksum tells.
      await answer.body?.cancel();
      return;
    }
    if (!answer.ok || answer.body === null) throw new RefusedDownload(answer.status);
    const isRest = answer.status === 206;
    const present = isRest ? part.bytes : 0;
    const announced = Number(answer.headers.get('content-length') ?? 0);
    checkSize(url, present + announced, maxBytes);
    await checkSpace(url, file, announced);
    if (isRest) log.info('Continuing a download', { url, bytes: part.bytes });
    else log.info('Downloading an image', { url, bytes: announced });
    const validator = answer.headers.get('etag') ?? answer.headers.get('last-modified') ?? null;
    await writeFile(factsOf(file), JSON.stringify({ url, sha256, validator }));
    const body = Readable.fromWeb(answer.body);
    body.on('data', () => idle.progressed());
    await pipeline(
      body,
      boundedBytes(url, file, { maxBytes, present }),
      createWriteStream(file, { flags: isRest ? 'a' : 'w' }),
      // The fetch of Node.js 22 can miss the signal once it has returned the answer.
      { signal: stop },
    );
  } finally {
    idle.stop();
  }
}

/** Deletes the file and what is known of it. */
export async function discard(file: string): Promise<void> {
  await rm(file, { force: true });
  await rm(factsOf(file), { force: true });
}

/** Resolves with the part of the same contents that was received before. */
async function knownPart(file: string, url: string, sha256: string): Promise<Part> {
  try {
    const facts: unknown = JSON.parse(await readFile(factsOf(file), 'utf8'));
    const { size } = await stat(file);
    if (!isJsonObject(facts) || facts['url'] !== url || facts['sha256'] !== sha256)
      return { bytes: 0, validator: undefined };
    const { validator } = facts;
    // A weak validator does not promise equal bytes.
    const isStrong = typeof validator === 'string' && !validator.startsWith('W/');
    return { bytes: size, validator: isStrong ? validator : undefined };
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT' && !(error instanceof SyntaxError)) throw error;
    return { bytes: 0, validator: undefined };
  }
}

function factsOf(file: string): string {
  return `${file}.json`;
}
