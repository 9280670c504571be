import { randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { access, lstat, open, realpath, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCodeOf, fileFaultOf } from '@nodepool/core';
import { CommandError } from './command-context.js';

const MODE = 0o600;
/** Files that this process has opened, e.g. by a redirection of the shell, which writes to the same file later. */
const OPENED = /^\/dev\/(?:stdout$|stderr$|fd\/)|^\/proc\//;
/** Error codes of a folder or a file that does not permit the replacement, e.g. because the file is a mount point. */
const NOT_REPLACEABLE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'EACCES', 'EPERM', 'EBUSY', 'EXDEV']);

/**
 * Writes the file. An existing file has its earlier content until the new one is complete, and retains its owner and
 * permissions. Files that cannot be replaced, e.g. pipes and devices, are overwritten. Rejects with `CommandError`.
 */
export async function replaceFile(file: string, content: string): Promise<void> {
  try {
    await write(file, content);
  } catch (error) {
    throw new CommandError(`${file} cannot be written: ${fileFaultOf(error, 'output')}`, { cause: error });
  }
}

async function write(file: string, content: string): Promise<void> {
  if (!OPENED.test(resolve(file))) {
    const existing = await unlessMissing(stat(file));
    // A link to a missing file exists, but has no status.
    const isNew = existing === undefined && (await unlessMissing(lstat(file))) === undefined;
    if (isNew && (await replaced(file, undefined, content))) return;
    if (existing?.isFile() === true && (await replaced(await realpath(file), existing, content))) return;
  }
  await writeFile(file, content, { mode: MODE });
}

/** Resolves with false if the file cannot be replaced here. Rejects if the content cannot be written. */
async function replaced(target: string, existing: Stats | undefined, content: string): Promise<boolean> {
  const temporary = join(dirname(target), `.nodepool-${randomUUID()}.tmp`);
  try {
    if (existing !== undefined) await access(target, constants.W_OK);
    const handle = await open(temporary, 'wx', MODE);
    try {
      if (existing !== undefined) await preserve(handle, existing);
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, target);
    return true;
  } catch (error) {
    await rm(temporary, { force: true });
    if (NOT_REPLACEABLE.has(errorCodeOf(error))) return false;
    throw error;
  }
}

/** Gives the owner and the permissions of the existing file to the new one. */
async function preserve(handle: FileHandle, { uid, gid, mode }: Stats): Promise<void> {
  const own = await handle.stat();
  if (own.uid !== uid || own.gid !== gid) await handle.chown(uid, gid);
  await handle.chmod(mode & 0o7777);
}

/** Resolves with undefined if the file does not exist. */
async function unlessMissing(status: Promise<Stats>): Promise<Stats | undefined> {
  try {
    return await status;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
