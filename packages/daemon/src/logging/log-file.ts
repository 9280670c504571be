/**
 * A log file: lines are appended in batches, the file is put aside when it is too large, and a full disk is survived.
 * Winston's own file transport loses lines when it rotates, and never writes again, nor finishes, after a failed write.
 */

import { close, closeSync, fstatSync, open, openSync, write } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { promisify } from 'node:util';
import { errorCodeOf, reasonOf } from '@nodepool/core';

/** When to put a file aside: as `<file>.1`, the one before as `<file>.2`, and so on. */
export interface LogRotation {
  readonly maxBytes: number;
  /** Files, the current one included. */
  readonly keep: number;
}

/** A log file cannot be written to. */
export class LogFileError extends Error {
  readonly code = 'log-file';
  constructor(file: string, cause: unknown) {
    super(`cannot write the log file ${file}: ${reasonOf(cause)}; check its folder, permissions and free space`, {
      cause,
    });
    this.name = 'LogFileError';
  }
}

const writeAsync = promisify(write);
const closeAsync = promisify(close);
const openAsync = promisify(open);

/** Lines that wait for a disk that does not answer take no more memory than this. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** Never fails once it is open: `onProblem` hears of lines that were lost, once per series of failures, and of the end of it. */
export class LogFile extends Writable {
  private descriptor: number;
  private size: number;
  private lost = 0;
  private failing = false;

  /** Opens the file at once; throws `LogFileError`. */
  constructor(
    private readonly file: string,
    private readonly rotation: LogRotation | undefined,
    private readonly onProblem: (message: string) => void,
  ) {
    super({ decodeStrings: false, defaultEncoding: 'utf8' });
    try {
      this.descriptor = openSync(file, 'a');
      this.size = fstatSync(this.descriptor).size;
    } catch (error) {
      throw new LogFileError(file, error);
    }
  }

  /** Drops the line if too much waits for the disk already: winston's transports do not wait for a slow stream. */
  override write(line: string): boolean {
    if (this.writableLength <= MAX_WAITING_BYTES) return super.write(line);
    this.lose(1, new Error('the disk does not keep up'));
    return false;
  }

  override _write(chunk: string, _encoding: string, done: () => void): void {
    void this.put(chunk, 1).then(done);
  }

  override _writev(chunks: { chunk: string }[], done: () => void): void {
    let text = '';
    for (const { chunk } of chunks) text += chunk;
    void this.put(text, chunks.length).then(done);
  }

  override _final(done: () => void): void {
    try {
      closeSync(this.descriptor);
    } catch (error) {
      this.lose(0, error);
    }
    done();
  }

  private async put(text: string, lines: number): Promise<void> {
    try {
      const bytes = Buffer.from(text);
      for (let offset = 0; offset < bytes.length;) {
        offset += (await writeAsync(this.descriptor, bytes, offset)).bytesWritten;
      }
      this.size += bytes.length;
    } catch (error) {
      this.lose(lines, error);
      return;
    }
    if (this.failing) this.recovered();
    if (this.rotation === undefined || this.size < this.rotation.maxBytes) return;
    try {
      await this.rotate(this.rotation);
    } catch (error) {
      // What was open stays open: lines go on into the large file.
      this.lose(0, error);
    }
  }

  private async rotate({ keep }: LogRotation): Promise<void> {
    // Each takes the place of the one before it; the oldest is replaced.
    for (let index = keep - 2; index >= 1; index -= 1) {
      await renameIfThere(`${this.file}.${index}`, `${this.file}.${index + 1}`);
    }
    if (keep > 1) await renameIfThere(this.file, `${this.file}.1`);
    else await rm(this.file, { force: true });
    const fresh = await openAsync(this.file, 'a');
    const before = this.descriptor;
    this.descriptor = fresh;
    this.size = 0;
    await closeAsync(before);
  }

  private lose(lines: number, error: unknown): void {
    this.lost += lines;
    if (this.failing) return;
    this.failing = true;
    this.onProblem(new LogFileError(this.file, error).message);
  }

  private recovered(): void {
    this.onProblem(`the log file ${this.file} can be written again; ${this.lost} lines were lost`);
    this.failing = false;
    this.lost = 0;
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw error;
  }
}
