/** The stand-in for actions/runner, a single file for hosts with Node.js. */

import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Path of the program. */
export const RUNNER_FILE = join(__dirname, '..', 'runner', 'run.cjs');

/** Lines that a shell executes and JavaScript skips. */
const SHELL_LINES = `#!/bin/sh\n':' //; exec node "$0" "$@"\n`;

/** Writes the stand-in as `run.sh` into a folder, which is created if necessary, and returns its path. */
export async function writeRunner(folder: string): Promise<string> {
  const program = await readFile(RUNNER_FILE, 'utf8');
  const path = join(folder, 'run.sh');
  await mkdir(folder, { recursive: true });
  await writeFile(path, SHELL_LINES + program.replace(/^#!.*\n/, ''));
  await chmod(path, 0o755);
  return path;
}
