/**
 * A log file that appends lines in batches, rotates when it is too large, and survives a full disk. Winston's own file
 * transport loses lines when it rotates, and never writes again, nor finishes, after a failed write.
 */

import { appendFile, closeSync, existsSync, fstatSync, openSync, renameSync, rmSync } from 'node:fs';
import { Writable } from 'node:stream';
import { promisify } from 'node:util';
import { reasonOf } from '@nodepool/core';

/** Rotation settings: the file becomes `<file>.1`, the previous one `<file>.2`, and so on. */
export interface LogRotation {
  readonly maxBytes: number;
  /** Number of files, the current one included. */
  readonly keep: number;
}

/** A log file is not writable. */
export class LogFileError extends Error {
  readonly code = 'log-file';
  constructor(file: string, cause: unknown) {
    super(`cannot write the log file ${file}: ${reasonOf(cause)}; check its folder, permissions and free space`, {
      cause,
    });
    this.name = 'LogFileError';
  }
}

const append = promisify(appendFile);

/** Limit (bytes) of lines that wait for a slow disk. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/**
 * A stream that never fails once it is open. Calls `onProblem` once per series of failures, and with the number of lost
 * lines at its end.
 */
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

  /**
   * Writes a line, or drops it if too much waits for the disk already: winston's transports do not wait for a slow
   * stream.
   */
  override write(line: string): boolean {
    if (this.writableLength <= MAX_WAITING_BYTES) return super.write(line);
    this.lose(1, new Error('the disk does not keep up'));
    return false;
  }

  override _write(line: string, _encoding: string, done: () => void): void {
    void this.put(line, 1).then(done);
  }

  override _writev(lines: { chunk: string }[], done: () => void): void {
    void this.put(lines.map(({ chunk }) => chunk).join(''), lines.length).then(done);
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
      await append(this.descriptor, text);
    } catch (error) {
      this.lose(lines, error);
      return;
    }
    if (this.failing) this.onProblem(`the log file ${this.file} can be written again; ${this.lost} lines were lost`);
    this.failing = false;
    this.lost = 0;
    this.size += Buffer.byteLength(text);
    if (this.rotation !== undefined && this.size >= this.rotation.maxBytes) this.rotate(this.rotation);
  }

  /** Rotates the files. On failure the open file stays open and continues to grow. */
  private rotate({ keep }: LogRotation): void {
    try {
      for (let index = keep - 1; index >= 1; index -= 1) {
        const before = index === 1 ? this.file : `${this.file}.${index - 1}`;
        if (existsSync(before)) renameSync(before, `${this.file}.${index}`);
      }
      if (keep === 1) rmSync(this.file, { force: true });
      const fresh = openSync(this.file, 'a');
      closeSync(this.descriptor);
      this.descriptor = fresh;
      this.size = 0;
    } catch (error) {
      this.lose(0, error);
    }
  }

  private lose(lines: number, error: unknown): void {
    this.lost += lines;
    if (!this.failing) this.onProblem(new LogFileError(this.file, error).message);
    this.failing = true;
  }
}
