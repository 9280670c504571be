/** The file of `--pidfile`. */

import { rmSync, writeFileSync } from 'node:fs';
import { reasonOf, type Logger } from '@nodepool/core';

/** The file of `--pidfile` cannot be written. */
export class PidFileError extends Error {
  readonly code = 'pid-file';
  constructor(file: string, cause: unknown) {
    super(
      `the file of --pidfile, ${file}, cannot be written: ${reasonOf(cause)}; ` +
        'name a file in an existing folder that this user can write, or omit the option',
      { cause },
    );
    this.name = 'PidFileError';
  }
}

/** The process id of a running daemon in a file; without a file name, this class has no effect. */
export class PidFile {
  private isWritten = false;

  constructor(private readonly file: string | undefined) {}

  /** Throws `PidFileError`. */
  write(): void {
    if (this.file === undefined) return;
    try {
      writeFileSync(this.file, `${process.pid}\n`);
    } catch (error) {
      throw new PidFileError(this.file, error);
    }
    this.isWritten = true;
  }

  /** Deletes the file if this process has written it. */
  remove(log: Logger): void {
    if (this.file === undefined || !this.isWritten) return;
    try {
      rmSync(this.file, { force: true });
    } catch (error) {
      log.warn('The file of --pidfile cannot be deleted', { file: this.file, reason: reasonOf(error) });
    }
  }
}
