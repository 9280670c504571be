/** Finds packages as Node.js does, by searching `node_modules` of all parent folders, and reads their metadata. */

import { readdir, readFile, realpath } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { isJsonObject, type JsonObject, type JsonValue, errorCodeOf } from '@nodepool/core';

export interface PackageInfo {
  readonly name: string;
  readonly version: string;
  /** Path without symbolic links. */
  readonly folder: string;
  /** The path before symbolic links are resolved; it is the same for every installed version. */
  readonly lookup: string;
  readonly manifest: JsonObject;
}

/** Returns the folders `node_modules` that are visible to a module in `folder`, nearest first. */
export function moduleFolders(folder: string): string[] {
  const folders: string[] = [];
  const { root } = parse(folder);
  for (let at = folder; ; at = dirname(at)) {
    if (!at.endsWith('node_modules')) folders.push(join(at, 'node_modules'));
    if (at === root || dirname(at) === at) return folders;
  }
}

/** Resolves with the package as `folder` would resolve it; undefined if there is none. Rejects if it cannot be read. */
export async function findPackage(name: string, folder: string): Promise<PackageInfo | undefined> {
  for (const modules of moduleFolders(folder)) {
    const found = await readPackage(join(modules, name));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Resolves with the package in `folder`; undefined if there is no package.json. Rejects if it cannot be read. */
export async function readPackage(folder: string): Promise<PackageInfo | undefined> {
  const file = join(folder, 'package.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw new Error(`${file} cannot be read`, { cause: error });
  }
  const manifest = parseManifest(text, file);
  const name = manifest['name'];
  const version = manifest['version'];
  return {
    name: typeof name === 'string' ? name : '',
    version: typeof version === 'string' ? version : '',
    folder: await realpath(folder),
    lookup: folder,
    manifest,
  };
}

/** Resolves with the packages in a folder `node_modules`, without those that have no readable package.json. */
export async function packagesIn(modules: string): Promise<PackageInfo[]> {
  const names: string[] = [];
  for (const name of await namesIn(modules)) {
    if (name.startsWith('@')) names.push(...(await namesIn(join(modules, name))).map((each) => join(name, each)));
    else names.push(name);
  }
  const read = await Promise.all(names.map((name) => readPackage(join(modules, name)).catch(() => undefined)));
  return read.filter((each) => each !== undefined);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => !name.startsWith('.')).sort();
  } catch {
    // A missing or unreadable folder contains no packages.
    return [];
  }
}

/** Conditions of the field `exports` that a dynamic import matches. */
const IMPORT_CONDITIONS = new Set(['node', 'import', 'module-sync', 'default']);

/** Returns the file that `import` of the package would load; undefined if package.json does not declare it. */
export function importEntry(manifest: JsonObject): string | undefined {
  const { exports, main } = manifest;
  if (exports !== undefined) {
    const root = isJsonObject(exports) && exports['.'] !== undefined ? exports['.'] : exports;
    return conditionalTarget(root);
  }
  return typeof main === 'string' ? main : 'index.js';
}

function conditionalTarget(target: JsonValue): string | undefined {
  if (typeof target === 'string') return target;
  if (Array.isArray(target)) {
    return (target as readonly JsonValue[]).map(conditionalTarget).find((each) => each !== undefined);
  }
  if (!isJsonObject(target)) return undefined;
  for (const [condition, value] of Object.entries(target)) {
    const found = IMPORT_CONDITIONS.has(condition) ? conditionalTarget(value) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

function parseManifest(text: string, file: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file} is not valid JSON`, { cause: error });
  }
  if (!isJsonObject(value)) throw new Error(`${file} is not a JSON object`);
  return value;
}

function isNotFound(error: unknown): boolean {
  const code = errorCodeOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
