import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import type { Framework } from './frameworks.js';
import { renamed, type DriverNames } from './names.js';

export interface CreateDriverOptions {
  readonly names: DriverNames;
  readonly framework: Framework;
  /** Folder to create. It must not exist, and its parent must. */
  readonly folder: string;
}

export interface CreatedDriver {
  readonly folder: string;
  /** Paths within the folder, sorted. */
  readonly files: readonly string[];
}

/** A failure to create a driver, after which none of its files remain. The message says why, and how to fix it. */
export class CreateDriverError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'CreateDriverError';
  }
}

const TEMPLATES = join(__dirname, '..', 'templates');

/** Names in a driver of the files that package managers would otherwise interpret as files of this package. */
const CALLED: Readonly<Record<string, string>> = { _gitignore: '.gitignore', '_package.json': 'package.json' };

/** Creates a folder with a driver. Rejects with a `CreateDriverError`, after removing the folder, if it fails. */
export async function createDriver({ names, framework, folder }: CreateDriverOptions): Promise<CreatedDriver> {
  const target = resolve(folder);
  const templates = await templateFiles(framework);
  await makeFolder(target);
  try {
    for (const [path, source] of templates) {
      await mkdir(dirname(join(target, path)), { recursive: true });
      await writeFile(join(target, path), renamed(await readFile(source, 'utf8'), names));
    }
  } catch (error) {
    await rm(target, { recursive: true, force: true });
    throw new CreateDriverError(`${target} could not be filled: ${reason(error)}`, error);
  }
  return { folder: target, files: [...templates.keys()].sort() };
}

/** Returns the template file of each path in the new folder: the common files and those of the framework. */
async function templateFiles(framework: Framework): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const part of ['common', framework]) {
    const root = join(TEMPLATES, part);
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const source = join(entry.parentPath, entry.name);
      files.set(relative(root, join(entry.parentPath, CALLED[entry.name] ?? entry.name)), source);
    }
  }
  return files;
}

async function makeFolder(target: string): Promise<void> {
  try {
    await mkdir(target);
  } catch (error) {
    throw new CreateDriverError(`${target} cannot be created: ${reason(error)}`, error);
  }
}

function reason(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'EEXIST':
      return 'it exists already; choose another name, or another folder with --folder';
    case 'ENOENT':
      return 'its parent folder does not exist; create it first, or choose another folder with --folder';
    case 'ENOTDIR':
      return 'its parent is not a folder; choose another folder with --folder';
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return 'you have no permission to write there; choose another folder with --folder';
    case 'ENOSPC':
      return 'the disk is full';
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
