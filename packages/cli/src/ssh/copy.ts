/** Copies files to a node with rsync if both sides have it, and with scp otherwise. */

import { statSync } from 'node:fs';
import { basename, posix as remotePath, resolve } from 'node:path';
import { CommandError } from '../command-context.js';
import { bracketed, findProgram, quote, type NodeTarget, type SshClient } from '@nodepool/daemon/ssh';

export interface CopySpec {
  readonly local: string;
  /** Path on the node, relative to the home folder; undefined: the name of the local file or folder. */
  readonly remote: string | undefined;
}

/** A file or a folder that exists on this machine. */
export interface Copy {
  readonly local: string;
  readonly remote: string;
  readonly isFolder: boolean;
}

/** Characters that no version of scp and rsync expands, and no option begins with. */
const REMOTE_PATH = /^[A-Za-z0-9_./][A-Za-z0-9_./@%+=,-]*$/;

/** Throws `CommandError` if there is no such file or folder. */
export function readCopy({ local, remote }: CopySpec): Copy {
  const path = resolve(local);
  const entry = statSync(path, { throwIfNoEntry: false });
  if (entry === undefined) throw new CommandError(`--copy: ${path} does not exist`);
  const target = remote ?? basename(path);
  if (!REMOTE_PATH.test(target)) {
    throw new CommandError(
      `--copy: ${JSON.stringify(target)} cannot be a path on a node; use letters, digits and ./_-`,
    );
  }
  return { local: path, remote: target, isFolder: entry.isDirectory() };
}

/** Copies one file, or the content of one folder, which is created there. Rejects with `CommandError` if it fails. */
export async function copyTo(
  client: SshClient,
  target: NodeTarget,
  { local, remote, isFolder }: Copy,
  path: string | undefined,
): Promise<void> {
  const folder = isFolder ? remote : remotePath.dirname(remote);
  const check = (program: string, status: number): void => {
    if (status === 0) return;
    throw new CommandError(`cannot copy ${local} to node ${target.id}: ${program} ended with status ${status}`);
  };
  check('mkdir', await client.script(target, `mkdir -p -- ${quote(folder)}`));
  const source = isFolder ? `${local}/.` : local;
  const destination = `${target.user}@${bracketed(target.address)}:${remote}`;
  const command = client.commandFor(target);
  const [, ...options] = command;
  const rsync = findProgram('rsync', path);
  if (rsync !== undefined && (await client.script(target, 'command -v rsync >/dev/null')) === 0) {
    const shell = [...command, '-p', String(target.port)].map(quoteForRsync).join(' ');
    check('rsync', await client.run(rsync, ['-a', '-s', '-e', shell, '--', source, destination]));
    return;
  }
  const scp = findProgram('scp', path);
  if (scp === undefined) throw new CommandError('--copy needs rsync or scp, and neither is on the PATH');
  const args = ['-r', '-p', '-q', ...options, '-P', String(target.port), '--', source, destination];
  check('scp', await client.run(scp, args));
}

/** Quotes a word of the value of rsync's option `-e`. */
function quoteForRsync(word: string): string {
  return /[\s'"]/.test(word) ? `'${word.replaceAll("'", "''")}'` : word;
}
