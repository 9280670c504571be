/**
 * Finds the drivers that a site has installed. A package is a driver when its package.json says so:
 * `"nodepool": {"driver": "<name>", "api": <integer>}`. No list of drivers exists anywhere in this code.
 */

import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isJsonObject, type JsonObject } from '../../model/json.js';
import { reasonOf } from '../../observe/error-text.js';
import { DRIVER_API, type Driver } from '../api.js';
import { DriverLoadError } from './errors.js';
import { exportedDriver, loadModule } from './load.js';
import { findPackage, moduleFolders, packagesIn, readPackage, type PackageInfo } from './packages.js';

/** Where to look for drivers. */
export interface DriverSearch {
  /** Short names of packages, or of paths, as the configuration gives them. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Folder of the configuration file: paths start there. */
  readonly configFolder: string;
  /** Folders from which packages are looked up as Node.js does, first to last. */
  readonly folders: readonly string[];
}

/** Loads the driver that the configuration calls `name`. Rejects with a `DriverLoadError`. */
export type DiscoverDriver = (name: string, search: DriverSearch) => Promise<Driver>;

/** A driver package as a listing shows it. */
export interface InstalledDriver {
  /** What its package.json calls the driver. */
  readonly name: string;
  readonly package: string;
  readonly version: string;
  /** The version of the driver API that it is written for; undefined when it does not say. */
  readonly api: number | undefined;
  readonly folder: string;
  /** Why it can't be used. */
  readonly error: DriverLoadError | undefined;
  /** What is not right, though it can be used. */
  readonly warnings: readonly string[];
}

/** A driver that was loaded, and the package that it came from. */
export interface LoadedDriver extends InstalledDriver {
  readonly driver: Driver;
  readonly error: undefined;
}

const CORE_PACKAGE = '@nodepool/core';
const SHORT_NAME = /^[a-z0-9][\w.-]*$/i;
const PACKAGE_NAME = /^(@[\w~.-]+\/)?[\w~-][\w~.-]*$/;

/** The launcher's own folder (or whichever program runs), the working directory, and the folder of the configuration file. */
export function defaultDriverFolders(configFolder: string): string[] {
  const program = process.argv[1];
  const folders = [program === undefined ? undefined : dirname(realPathOr(program)), process.cwd(), configFolder];
  return [...new Set(folders.filter((folder) => folder !== undefined))];
}

function realPathOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The program's file is gone, e.g. replaced by an update: its folder may still be right.
    return path;
  }
}

export const discoverDriver: DiscoverDriver = async (name, search) => (await loadDriver(name, search)).driver;

/** Loads the driver that the configuration calls `name`, and tells where it came from. Rejects with a `DriverLoadError`. */
export async function loadDriver(name: string, search: DriverSearch): Promise<LoadedDriver> {
  const wanted = packageOf(name, search);
  const found = isPath(wanted) ? await readAt(name, wanted, search) : await findInFolders(name, wanted, search.folders);
  return await loadFrom(name, found);
}

/** Every driver package that is installed, those that can't be used included, by name. */
export async function listInstalledDrivers(search: DriverSearch): Promise<InstalledDriver[]> {
  const packages = new Map<string, PackageInfo>();
  const folders = new Set(search.folders.flatMap(moduleFolders));
  for (const folder of folders) {
    for (const found of await packagesIn(folder)) {
      if (isJsonObject(found.manifest['nodepool']) && !packages.has(found.folder)) packages.set(found.folder, found);
    }
  }
  const unread: InstalledDriver[] = [];
  for (const [alias, target] of search.aliases) {
    if (!isPath(target)) continue;
    const found = await orError(readAt(alias, target, search));
    if (found instanceof DriverLoadError) unread.push(unreadable(alias, target, search, found));
    else packages.set(found.folder, found);
  }
  const drivers = await Promise.all([...packages.values()].map((found) => inspect(found)));
  return [...drivers, ...unread].sort((a, b) => a.name.localeCompare(b.name) || a.folder.localeCompare(b.folder));
}

async function orError<T>(work: Promise<T>): Promise<T | DriverLoadError> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof DriverLoadError) return error;
    throw error;
  }
}

function unreadable(alias: string, path: string, search: DriverSearch, error: DriverLoadError): InstalledDriver {
  const folder = resolve(search.configFolder, path);
  return { name: alias, package: path, version: '', api: undefined, folder, error, warnings: [] };
}

async function inspect(found: PackageInfo): Promise<InstalledDriver> {
  const loaded = await orError(loadFrom(found.name, found));
  const failed = loaded instanceof DriverLoadError;
  return { ...describe(found), error: failed ? loaded : undefined, warnings: failed ? [] : loaded.warnings };
}

/** The package, or the path, that a name stands for. */
function packageOf(name: string, search: DriverSearch): string {
  const alias = search.aliases.get(name);
  if (alias !== undefined && (isPath(alias) || PACKAGE_NAME.test(alias))) return alias;
  if (alias === undefined && isPath(name)) return name;
  if (alias === undefined && name.startsWith('@') && PACKAGE_NAME.test(name)) return name;
  if (alias === undefined && SHORT_NAME.test(name)) return `@nodepool/driver-${name}`;
  throw new DriverLoadError({
    reason: 'not-installed',
    driver: name,
    problem: `${JSON.stringify(alias ?? name)} is neither the name of a driver, nor of a package, nor a path`,
    remedy: 'write a short name, a name with a scope (@scope/package), or a path that starts with ./ or /',
  });
}

function isPath(name: string): boolean {
  return name.startsWith('./') || name.startsWith('../') || isAbsolute(name);
}

async function readAt(name: string, path: string, search: DriverSearch): Promise<PackageInfo> {
  const folder = resolve(search.configFolder, path);
  const found = await readOrBroken(name, () => readPackage(folder));
  if (found !== undefined) return found;
  throw new DriverLoadError({
    reason: 'not-installed',
    driver: name,
    problem: `there is no package in ${folder}: it has no package.json`,
    remedy: 'correct the path, which starts at the folder of the configuration file',
  });
}

async function findInFolders(name: string, wanted: string, folders: readonly string[]): Promise<PackageInfo> {
  for (const folder of folders) {
    const found = await readOrBroken(name, () => findPackage(wanted, folder));
    if (found !== undefined) return found;
  }
  throw new DriverLoadError({
    reason: 'not-installed',
    driver: name,
    problem: `the package ${wanted} of the driver ${name} is not installed in ${folders.join(', ')} or above`,
    remedy: `run: npm install ${wanted}`,
  });
}

async function readOrBroken(
  name: string,
  read: () => Promise<PackageInfo | undefined>,
): Promise<PackageInfo | undefined> {
  try {
    return await read();
  } catch (error) {
    const problem = reasonOf(error);
    throw new DriverLoadError({
      reason: 'broken',
      driver: name,
      problem,
      remedy: 'install the package again',
      cause: error,
    });
  }
}

async function loadFrom(name: string, found: PackageInfo): Promise<LoadedDriver> {
  const core = await readPackage(await ownFolder());
  checkApi(name, found, core);
  const driver = exportedDriver(await moduleOf(name, found));
  const label = labelOf(found);
  if (driver === undefined) {
    throw new DriverLoadError({
      reason: 'not-a-driver',
      driver: name,
      problem: `${label} exports no driver, neither as \`default\` nor as \`driver\``,
      remedy: 'report it to the authors of the package, or install another version of it',
    });
  }
  return { ...describe(found), driver, error: undefined, warnings: await copiesOfCore(found, core) };
}

async function moduleOf(name: string, found: PackageInfo): Promise<unknown> {
  try {
    return await loadModule(found);
  } catch (error) {
    throw new DriverLoadError({
      reason: 'broken',
      driver: name,
      problem: `${labelOf(found)} fails to load: ${reasonOf(error)}`,
      remedy: `install it again (npm install ${found.name}) or report it to its authors`,
      cause: error,
    });
  }
}

function describe(found: PackageInfo): Omit<InstalledDriver, 'error' | 'warnings'> {
  const metadata = metadataOf(found);
  const name = metadata['driver'];
  const api = metadata['api'];
  return {
    name: typeof name === 'string' ? name : found.name,
    package: found.name,
    version: found.version,
    api: typeof api === 'number' ? api : undefined,
    folder: found.folder,
  };
}

function metadataOf(found: PackageInfo): JsonObject {
  const metadata = found.manifest['nodepool'];
  return isJsonObject(metadata) ? metadata : {};
}

function labelOf(found: PackageInfo): string {
  return `${found.name}@${found.version} (${found.folder})`;
}

function checkApi(name: string, found: PackageInfo, core: PackageInfo | undefined): void {
  const metadata = metadataOf(found);
  const api = metadata['api'];
  if (typeof metadata['driver'] !== 'string' || typeof api !== 'number' || !Number.isInteger(api)) {
    throw new DriverLoadError({
      reason: 'not-a-driver',
      driver: name,
      problem: `${labelOf(found)} is not a driver: its package.json has no "nodepool": {"driver": <name>, "api": <integer>}`,
      remedy: 'name another package, or install a version of it that is a driver',
    });
  }
  if (api === DRIVER_API) return;
  const ours = `this Nodepool (${CORE_PACKAGE} ${core?.version ?? 'of unknown version'}) has version ${DRIVER_API}`;
  throw new DriverLoadError({
    reason: 'api-mismatch',
    driver: name,
    problem: `${labelOf(found)} is written for version ${api} of the driver API, and ${ours}`,
    remedy: api < DRIVER_API ? updateRemedy(found) : olderRemedy(found),
  });
}

function updateRemedy(found: PackageInfo): string {
  return `install a newer version of the driver, one for driver API ${DRIVER_API}: npm install ${found.name}@latest`;
}

/** A new API is a new major version of a driver. */
function olderRemedy(found: PackageInfo): string {
  const peers = found.manifest['peerDependencies'];
  const range = isJsonObject(peers) ? peers[CORE_PACKAGE] : undefined;
  const needs = typeof range === 'string' ? ` to one with ${CORE_PACKAGE} ${range}` : '';
  const major = /^\d+/.exec(found.version)?.[0] ?? found.version;
  const older = `install an older version of the driver, one for driver API ${DRIVER_API}: npm install "${found.name}@<${major}"`;
  return `${older}, or update Nodepool${needs}: npm install @nodepool/launcher@latest`;
}

/** Two copies of core in one process know nothing of each other's errors and types. */
async function copiesOfCore(found: PackageInfo, core: PackageInfo | undefined): Promise<string[]> {
  const theirs = await findPackage(CORE_PACKAGE, found.folder).catch(() => undefined);
  if (theirs === undefined || core === undefined || theirs.folder === core.folder) return [];
  return [
    `${found.name} uses a second copy of ${CORE_PACKAGE}, ${theirs.version} in ${theirs.folder}, beside ` +
      `${core.version} in ${core.folder}; run: npm dedupe (the driver must have it as a peer dependency)`,
  ];
}

let ownFolderFound: Promise<string> | undefined;

/** Folder of this package, wherever in it this file is run from. */
function ownFolder(): Promise<string> {
  ownFolderFound ??= findOwnFolder(__dirname);
  return ownFolderFound;
}

async function findOwnFolder(start: string): Promise<string> {
  for (let at = start; dirname(at) !== at; at = dirname(at)) {
    const found = await readPackage(at).catch(() => undefined);
    if (found?.name === CORE_PACKAGE) return at;
  }
  return join(start, '..');
}
