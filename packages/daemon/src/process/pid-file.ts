import { readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileFaultOf, type Logger } from '@nodepool/core';

/** The file of `--pidfile` cannot be written. */
export class PidFileError extends Error {
  readonly code = 'pid-file';
  constructor(file: string, cause: unknown) {
    super(
      `the file of --pidfile, ${file}, cannot be written: ${fileFaultOf(cause, 'output')}; ` +
        'name a file in an existing folder that this user can write, or omit the option',
      { cause },
    );
    this.name = 'PidFileError';
  }
}

/**
 * Writes the id of this process. Returns a function for the end of the program, which deletes the file, or restores the
 * id of another process that runs this program: a second start with the same options may fail. Throws `PidFileError`.
 */
export function writePidFile(file: string, log: Logger): () => void {
  const before = readPid(file);
  try {
    writeFileSync(file, `${process.pid}\n`);
  } catch (error) {
    throw new PidFileError(file, error);
  }
  return () => {
    if (readPid(file) !== process.pid) return;
    try {
      if (before !== undefined && before !== process.pid && runsThisProgram(before)) writeFileSync(file, `${before}\n`);
      else rmSync(file, { force: true });
    } catch (error) {
      log.warn('The file of --pidfile cannot be deleted', { file, reason: fileFaultOf(error, 'output') });
    }
  };
}

function readPid(file: string): number | undefined {
  try {
    const text = readFileSync(file, 'utf8').trim();
    return /^[1-9][0-9]{0,9}$/.test(text) ? Number(text) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns true if the process runs this program. The id in an old file may be that of any other process by now. */
function runsThisProgram(pid: number): boolean {
  const [, program = ''] = process.argv;
  try {
    const own = realpathSync(program);
    const folder = readlinkSync(`/proc/${pid}/cwd`);
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    // The program may be named by a relative path, or by that of a link.
    return words.some((word) => realPathOf(resolve(folder, word)) === own);
  } catch {
    return false;
  }
}

/** Returns undefined if there is no such file. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
