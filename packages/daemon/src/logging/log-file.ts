/**
 * A log file that appends lines in batches, rotates when it is too large, and survives a full disk. Winston's own file
 * transport loses lines when it rotates, and never writes again, nor finishes, after a failed write.
 */

import {
  appendFile,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { promisify } from 'node:util';
import { fileFaultOf, type Clock } from '@nodepool/core';
import { endOfTime, SUFFIX, suffixOf, type TimedRotation } from './timed-rotation.js';

/** Rotation by size: the file becomes `<file>.1`, the previous one `<file>.2`, and so on. */
interface SizedRotation {
  readonly maxBytes: number;
  /** Number of files, the current one included. */
  readonly keep: number;
}

export type LogRotation = SizedRotation | TimedRotation;

/** Settings of a log file. */
export interface LogFileOptions {
  /** Path of the file, to which lines are appended; its folder must exist. */
  readonly file: string;
  /** Rotation of the file; undefined if this program does not rotate it. */
  readonly rotation: LogRotation | undefined;
  /** True to open the file again once another program has moved or deleted it. */
  readonly watch?: boolean;
}

/** A log file is not writable. */
export class LogFileError extends Error {
  readonly code = 'log-file';
  constructor(file: string, cause: unknown) {
    super(
      `cannot write the log file ${file}: ${fileFaultOf(cause, 'output')}; check its folder, permissions and free space`,
      {
        cause,
      },
    );
    this.name = 'LogFileError';
  }
}

const append = promisify(appendFile);

/** Limit (bytes) of lines that wait for a slow disk. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** A stream that never fails once open. Calls `onProblem` per series of failures, then with the count of lost lines. */
export class LogFile extends Writable {
  private descriptor: number;
  private size: number;
  private lost = 0;
  private failing = false;
  /** Time (unix milliseconds) of the next rotation by time. */
  private rotationAt = Infinity;
  private readonly file: string;

  /** Opens the file at once; throws `LogFileError`. */
  constructor(
    private readonly options: LogFileOptions,
    private readonly clock: Clock,
    private readonly onProblem: (message: string) => void,
  ) {
    super({ decodeStrings: false, defaultEncoding: 'utf8' });
    const { file, rotation } = options;
    this.file = file;
    try {
      this.descriptor = openSync(file, 'a');
      const { size, mtimeMs } = fstatSync(this.descriptor);
      this.size = size;
      // The lines of an earlier process belong to the time of the last one.
      const from = size > 0 ? Math.min(mtimeMs, clock.now()) : clock.now();
      if (rotation !== undefined && 'unit' in rotation) this.rotationAt = endOfTime(rotation, from);
    } catch (error) {
      throw new LogFileError(file, error);
    }
  }

  /** Writes a line, or drops it if too much waits for the disk: winston's transports do not wait for a slow stream. */
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
    this.prepare();
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
    const { rotation } = this.options;
    if (rotation !== undefined && 'maxBytes' in rotation && this.size >= rotation.maxBytes) this.rotate(rotation);
  }

  /** Opens the right file for the next lines. On failure the open file stays open. */
  private prepare(): void {
    const { rotation, watch = false } = this.options;
    try {
      if (watch && this.isMoved()) this.reopen();
      if (rotation !== undefined && 'unit' in rotation) this.rotateInTime(rotation);
    } catch (error) {
      this.lose(0, error);
    }
  }

  private rotateInTime(rotation: TimedRotation): void {
    const now = this.clock.now();
    if (now < this.rotationAt) return;
    const moved = `${this.file}.${suffixOf(rotation, this.rotationAt)}`;
    // Set first: a failed rotation is not repeated with each line.
    while (this.rotationAt <= now) this.rotationAt = endOfTime(rotation, Math.max(this.rotationAt, now));
    if (existsSync(this.file)) renameSync(this.file, moved);
    this.reopen();
    this.removeOld(rotation.keep);
  }

  private isMoved(): boolean {
    const open = fstatSync(this.descriptor);
    const named = statSync(this.file, { throwIfNoEntry: false });
    return named === undefined || named.ino !== open.ino || named.dev !== open.dev;
  }

  private reopen(): void {
    const fresh = openSync(this.file, 'a');
    closeSync(this.descriptor);
    this.descriptor = fresh;
    this.size = fstatSync(fresh).size;
  }

  /** Deletes the oldest files of a rotation by time. */
  private removeOld(keep: number): void {
    if (keep === 0) return;
    const [folder, prefix] = [dirname(this.file), `${basename(this.file)}.`];
    const old = readdirSync(folder).filter((name) => name.startsWith(prefix) && SUFFIX.test(name.slice(prefix.length)));
    for (const name of old.toSorted().reverse().slice(keep)) rmSync(join(folder, name), { force: true });
  }

  /** Rotates the files by size. On failure the open file stays open and continues to grow. */
  private rotate({ keep }: SizedRotation): void {
    try {
      for (let index = keep - 1; index >= 1; index -= 1) {
        const before = index === 1 ? this.file : `${this.file}.${index - 1}`;
        if (existsSync(before)) renameSync(before, `${this.file}.${index}`);
      }
      if (keep === 1) rmSync(this.file, { force: true });
      this.reopen();
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
