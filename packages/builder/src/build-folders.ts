/**
 * Temporary files and processes of builds. The commands of a build get a folder of their own as `TMPDIR` and `TMP_DIR`.
 * The folder and the identity of the processes are recorded in images-dir before the build starts, so that a builder
 * recognizes exactly those that a killed builder has left.
 *
 * Files of a record, `<images-dir>/builds-in-progress/<image>-<build id>/`:
 *
 * - `owner`: the builder process, as in `/proc/<pid>/stat`
 * - `leader`: the first process of the build, which leads its process group; written by that process
 * - `mounts`: the mounts before the build; written by that process
 * - `tmp`: a symbolic link to the folder for temporary files
 * - `output`: a pipe for the output of the build
 * - `ending`: exists once the build has been asked to end
 */

import { lstat, mkdir, readdir, readFile, readlink, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorCodeOf } from '@nodepool/core';
import type { BuildRef } from '@nodepool/store';
import { BUILD_ID } from './disk-image-files.js';
import { containsMounts, detachLoopDevices, parseMounts, unmountBelow } from './mounts.js';
import { isRoot, parseProcessStat, run, runAsRoot, type ProcessIdentity } from './processes.js';

const RECORDS = 'builds-in-progress';
const DEFAULT_PARENT = '/tmp';

export class BuildFolders {
  private readonly records: string;

  constructor(imagesDir: string) {
    this.records = join(imagesDir, RECORDS);
  }

  /** Resolves with the builds that have a record, running ones included. */
  async list(): Promise<readonly BuildRef[]> {
    const names = await readdir(this.records).catch(emptyIfMissing);
    return names.flatMap((name) => {
      const dash = name.lastIndexOf('-');
      const [image, id] = [name.slice(0, Math.max(dash, 0)), name.slice(dash + 1)];
      return image !== '' && BUILD_ID.test(id) ? [{ image, id }] : [];
    });
  }

  of({ image, id }: BuildRef): BuildFolder {
    return new BuildFolder(join(this.records, `${image}-${id}`), id);
  }

  /** Creates the record and the folder for temporary files, below the folder that the environment names for them. */
  async create(build: BuildRef, env: Readonly<Record<string, string | undefined>>): Promise<BuildFolder> {
    await mkdir(this.records, { recursive: true });
    const folder = this.of(build);
    await mkdir(folder.record);
    try {
      await writeFile(folder.file('owner'), await readFile('/proc/self/stat'));
      // The order is that of diskimage-builder.
      const parent = await realpath(env['TMPDIR'] || env['TMP_DIR'] || DEFAULT_PARENT);
      const path = join(parent, temporaryName(build.id));
      await symlink(path, folder.file('tmp'));
      await mkdir(path, { mode: 0o700 });
    } catch (error) {
      await rm(folder.record, { recursive: true });
      throw error;
    }
    return folder;
  }
}

export class BuildFolder {
  constructor(
    readonly record: string,
    private readonly id: string,
  ) {}

  file(name: 'owner' | 'leader' | 'mounts' | 'tmp' | 'output' | 'ending'): string {
    return join(this.record, name);
  }

  /** Resolves with the path of the folder for temporary files. */
  temporary(): Promise<string> {
    return readlink(this.file('tmp'));
  }

  /** Resolves with the builder process that started the build. */
  owner(): Promise<ProcessIdentity | undefined> {
    return this.processIn('owner');
  }

  /** Resolves with the first process of the build; undefined if it has not started. */
  leader(): Promise<ProcessIdentity | undefined> {
    return this.processIn('leader');
  }

  /** Resolves with true for the first caller: a build that gets a second signal stops cleaning up. */
  async startEnding(): Promise<boolean> {
    try {
      await writeFile(this.file('ending'), '', { flag: 'wx' });
      return true;
    } catch (error) {
      if (errorCodeOf(error) === 'EEXIST') return false;
      throw error;
    }
  }

  /** Resolves with the time (unix milliseconds) at which the build was asked to end. */
  async endingSince(): Promise<number> {
    return (await stat(this.file('ending'))).mtimeMs;
  }

  /** Unmounts what is mounted in the folder for temporary files, and deletes it. No process of the build is left. */
  async remove(): Promise<void> {
    const path = await this.temporary().catch(undefinedIfMissing);
    if (path !== undefined && (await this.isOwn(path))) {
      const before = await readFile(this.file('mounts'), 'utf8').catch(undefinedIfMissing);
      await unmountBelow(path, parseMounts(before ?? ''));
      await detachLoopDevices(path);
      await deleteTree(path);
    }
    await rm(this.record, { recursive: true });
  }

  /** Resolves with false if the folder does not exist. Rejects if this builder has not created it. */
  private async isOwn(path: string): Promise<boolean> {
    const found = await lstat(path).catch(undefinedIfMissing);
    if (found === undefined) return false;
    if (basename(path) === temporaryName(this.id) && found.isDirectory() && found.uid === process.geteuid?.()) {
      return true;
    }
    throw new Error(`${path} is not the folder that this builder created for build ${this.id}`);
  }

  private async processIn(name: 'owner' | 'leader'): Promise<ProcessIdentity | undefined> {
    return parseProcessStat((await readFile(this.file(name), 'utf8').catch(undefinedIfMissing)) ?? '');
  }
}

/** Deletes a folder that contains no mounts; as root if it has files of root. */
async function deleteTree(path: string): Promise<void> {
  if (await containsMounts(path)) throw new Error(`${path} contains mounts`);
  const args = ['-rf', '--one-file-system', '--', path];
  try {
    await run('rm', args);
  } catch (error) {
    if (isRoot()) throw error;
    await runAsRoot('rm', args);
  }
}

function temporaryName(id: string): string {
  return `nodepool-${id}`;
}

function undefinedIfMissing(error: unknown): undefined {
  if (errorCodeOf(error) === 'ENOENT') return undefined;
  throw error;
}

function emptyIfMissing(error: unknown): [] {
  undefinedIfMissing(error);
  return [];
}
