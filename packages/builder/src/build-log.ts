/** Logs of builds, `<build-log-dir>/<image>-<build id>.log`, with a limited number per image. */

import { createWriteStream, type WriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, type Logger } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import { BUILD_ID } from './disk-image-files.js';

/** Characters of the output that are kept to find its last line, and the limit of that line. */
const TAIL_LENGTH = 4000;
const MAX_LAST_LINE = 200;

/** The log of one running build. A failing disk never fails the build: its output is dropped, with one warning. */
export class BuildLog {
  private written = 0;
  private tail = '';
  private broken = false;
  /** Callbacks waiting for room in the buffer. */
  private waiting: (() => void)[] = [];

  private constructor(
    readonly file: string,
    private readonly stream: WriteStream,
    log: Logger,
  ) {
    stream.on('drain', () => this.wake());
    stream.on('error', (error) => {
      if (!this.broken)
        log.warn('The log of the build cannot be written; the build continues without it', { file, error });
      this.broken = true;
      this.wake();
    });
  }

  /** Opens the log, creating its folder. Never rejects. */
  static async open(folder: string, build: BuildRef, log: Logger): Promise<BuildLog> {
    const file = logPath(folder, build);
    try {
      await mkdir(folder, { recursive: true });
    } catch (error) {
      log.warn('The folder for logs of builds cannot be created', { folder, error });
    }
    return new BuildLog(file, createWriteStream(file, { flags: 'a' }), log);
  }

  get size(): number {
    return this.written;
  }

  /** The last line of output that is not a trace of the shell (`+ …`); if all lines are traces, the last of them. */
  get lastLine(): string {
    const lines = this.tail.split('\n').filter((line) => line.trim() !== '');
    const last = lines.findLast((line) => !line.startsWith('+')) ?? lines.at(-1) ?? '';
    return last.trim().slice(0, MAX_LAST_LINE);
  }

  /** Writes output. Returns false if the disk is slower than the build; `onDrain` is called when there is room. */
  write(piece: Buffer, onDrain: () => void): boolean {
    this.written += piece.byteLength;
    this.tail = (this.tail + piece.toString('utf8')).slice(-TAIL_LENGTH);
    if (this.broken || this.stream.write(piece)) return true;
    this.waiting.push(onDrain);
    return false;
  }

  /** Writes a last line and closes. Never rejects. */
  async end(lastLine: string): Promise<void> {
    if (this.broken) return;
    await new Promise<void>((resolve) => {
      this.stream.once('close', resolve);
      this.stream.end(`${lastLine}\n`);
    });
  }

  private wake(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const wake of waiting) wake();
  }
}

export function logPath(folder: string, { image, id }: BuildRef): string {
  return join(folder, `${image}-${id}.log`);
}

/** Deletes an image's oldest logs except `keep`, or except the newest if it is 0; -1 keeps all. Never rejects. */
export async function removeOldLogs(folder: string, image: string, keep: number, log: Logger): Promise<void> {
  if (keep < 0) return;
  try {
    const names = (await readdir(folder)).filter((name) => isLogOf(name, image));
    const dated = await Promise.all(
      names.map(async (name) => ({ name, time: (await stat(join(folder, name))).mtimeMs })),
    );
    dated.sort((a, b) => b.time - a.time || (a.name < b.name ? 1 : -1));
    for (const { name } of dated.slice(Math.max(keep, 1))) await rm(join(folder, name), { force: true });
  } catch (error) {
    log.warn('Old logs of builds could not be removed', { folder, image, reason: reasonOf(error) });
  }
}

/** Returns true if the log is the image's: the rest of its name is a build's id (a name may be a prefix of another). */
function isLogOf(name: string, image: string): boolean {
  if (!name.startsWith(`${image}-`)) return false;
  const [id, extension] = name.slice(image.length + 1).split('.');
  return id !== undefined && extension === 'log' && BUILD_ID.test(id);
}
