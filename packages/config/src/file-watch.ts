/**
 * Notifies of changed files, however they are replaced: written in place, renamed over, or by swapping a symbolic link
 * on the path to them, as Kubernetes does with mounted ConfigMaps.
 *
 * It uses the system's own events. Libraries above them compare time stamps and delay events to classify a change, and
 * miss a file that is replaced quickly; here only the fact of a change matters.
 */

import { watch, type FSWatcher } from 'node:fs';
import { lstat, readlink, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, parse, resolve, sep } from 'node:path';
import { errorCodeOf } from '@nodepool/core';

export interface FileWatch {
  /** Resolves once later changes are noticed. */
  ready(): Promise<void>;
  /** Resolves once watching has ended. */
  close(): Promise<void>;
}

/** Calls `onEvent` whenever one of the files may have changed, and `onError` if watching itself fails. */
export type WatchFiles = (
  files: readonly string[],
  onEvent: () => void,
  onError: (error: unknown) => void,
) => FileWatch;

export const watchFiles: WatchFiles = (files, onEvent, onError) => new SystemFileWatch(files, onEvent, onError);

/** Limit of symbolic links on a path, the same as Linux's. */
const MAX_LINKS = 40;
/** Attempts to set up the watches of files that keep changing; after these, the next event tries again. */
const MAX_ROUNDS = 5;

/** A path to watch. `names`: the relevant entries of a folder, undefined for all of them. */
interface Target {
  readonly path: string;
  /** Device and inode: a new file or folder of the same name needs a new watch. */
  readonly identity: string;
  readonly names: ReadonlySet<string> | undefined;
}

class SystemFileWatch implements FileWatch {
  private watchers: FSWatcher[] = [];
  private watched: string | undefined;
  private closed = false;
  private current: Promise<void>;

  constructor(
    private readonly files: readonly string[],
    private readonly onEvent: () => void,
    private readonly onError: (error: unknown) => void,
  ) {
    this.current = this.follow();
  }

  ready(): Promise<void> {
    return this.current;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.current;
    this.closeWatchers();
  }

  /** Handles an event, after which the links and folders on the path may differ. */
  private notice(): void {
    if (this.closed) return;
    this.current = this.current.then(() => this.follow());
    this.onEvent();
  }

  private async follow(): Promise<void> {
    try {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const targets = await targetsOf(this.files);
        const identity = targets.map((target) => `${target.path}=${target.identity}`).join('\0');
        if (this.closed || identity === this.watched) return;
        const isFirst = this.watched === undefined;
        this.closeWatchers();
        this.watched = identity;
        this.watchers = targets.flatMap((target) => this.open(target));
        // Changes before the new watches were set up produced no events.
        if (!isFirst) this.onEvent();
      }
    } catch (error) {
      this.onError(error);
    }
  }

  private open({ path, names }: Target): FSWatcher[] {
    try {
      const watcher = watch(path, { persistent: false }, (_event, name) => {
        if (name === null || names === undefined || names.has(name)) this.notice();
      });
      watcher.on('error', this.onError);
      return [watcher];
    } catch (error) {
      // Deleted since it was listed: the next round finds its replacement.
      if (!isNotFound(error)) throw error;
      this.watched = '';
      return [];
    }
  }

  private closeWatchers(): void {
    for (const watcher of this.watchers) watcher.close();
    this.watchers = [];
  }
}

/**
 * Resolves with the folders of the entries, whose watches survive a replacement, and the files themselves: a file that
 * is mounted into a container produces no event in its folder.
 */
async function targetsOf(files: readonly string[]): Promise<Target[]> {
  const namesByFolder = new Map<string, Set<string> | undefined>();
  const targets = new Map<string, Target>();
  for (const file of files) {
    const entries = await pathEntries(file);
    for (const entry of entries) {
      const folder = await existingFolder(dirname(entry));
      const names = folder === dirname(entry) ? (namesByFolder.get(folder) ?? new Set([basename(folder)])) : undefined;
      names?.add(basename(entry));
      namesByFolder.set(folder, names);
    }
    const last = entries.at(-1);
    const identity = last === undefined ? undefined : await identityOf(last);
    if (last !== undefined && identity !== undefined) targets.set(last, { path: last, identity, names: undefined });
  }
  for (const [path, names] of namesByFolder) {
    targets.set(path, { path, identity: (await identityOf(path)) ?? '', names });
  }
  return [...targets.values()];
}

/** Resolves with the folder, or its nearest existing parent. */
async function existingFolder(folder: string): Promise<string> {
  let at = folder;
  while ((await identityOf(at)) === undefined && dirname(at) !== at) at = dirname(at);
  return at;
}

async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path);
    return `${dev}:${ino}`;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Resolves with every symbolic link on the path, then the resolved file: a change of any can change the contents. */
async function pathEntries(file: string): Promise<string[]> {
  const entries: string[] = [];
  let path = resolve(file);
  for (let links = 0; links < MAX_LINKS; links++) {
    const link = await firstLink(path);
    if (link === undefined) break;
    entries.push(link.path);
    const target = isAbsolute(link.target) ? link.target : join(dirname(link.path), link.target);
    path = resolve(target, link.rest);
  }
  return [...entries, path];
}

async function firstLink(path: string): Promise<{ path: string; target: string; rest: string } | undefined> {
  const { root } = parse(path);
  const steps = path.slice(root.length).split(sep);
  let at = root;
  for (const [index, step] of steps.entries()) {
    at = join(at, step);
    try {
      if (!(await lstat(at)).isSymbolicLink()) continue;
      return { path: at, target: await readlink(at), rest: steps.slice(index + 1).join(sep) };
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
  return undefined;
}

/** Returns true if the error says that the file does not exist. */
function isNotFound(error: unknown): boolean {
  const code = errorCodeOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
