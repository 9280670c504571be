/**
 * Finds the installed drivers. A package declares its drivers in package.json: `"nodepool": {"driver": "<name>",
 * "api": <integer>}`, or `"drivers": {"<name>": "<export>"}` if it has several.
 */

import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import { didYouMean } from '../suggest.js';
import { isJsonObject, reasonOf, type Driver } from '@nodepool/core';
import { declaredDrivers, type DeclaredDriver } from './declared.js';
import { DriverLoadError } from './errors.js';
import { describe, loadFrom, type DriverPackage, type LoadedDriver } from './load-driver.js';
import { packageManagerOf, type PackageManager } from './package-manager.js';
import { findPackage, moduleFolders, packagesIn, readPackage, type PackageInfo } from './packages.js';

export interface DriverSearch {
  /** Packages or paths by the short names of the configuration. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Folder of the configuration file: relative paths start there. */
  readonly configFolder: string;
  /** Folders from which packages are resolved as in Node.js, first to last. */
  readonly folders: readonly string[];
}

/** Loads the driver with the configured `name`. Rejects with a `DriverLoadError`. */
export type DiscoverDriver = (name: string, search: DriverSearch) => Promise<Driver>;

/** An entry in the list of installed drivers. */
export interface InstalledDriver extends DriverPackage {
  /** Names that a configuration may use: the short name, the package, a path, a name in `DriverSearch.aliases`. */
  readonly configNames: readonly string[];
  /** The reason why it cannot be used. */
  readonly error: DriverLoadError | undefined;
}

/** `driver: NAME` means the package with this prefix followed by NAME, unless `SHARED_PACKAGES` has NAME. */
const SHORT_NAME_PACKAGE = '@nodepool/driver-';
/** Short names of drivers whose package has the name of another driver. */
const SHARED_PACKAGES: ReadonlyMap<string, string> = new Map([
  ['openshift', '@nodepool/driver-kubernetes'],
  ['openshiftpods', '@nodepool/driver-kubernetes'],
]);
const SHORT_NAME = /^[a-z0-9][\w.-]*$/i;
const PACKAGE_NAME = /^(@[\w~.-]+\/)?[\w~-][\w~.-]*$/;

/** Returns the folder of the running program, the working directory, and the folder of the configuration file. */
export function defaultDriverFolders(configFolder: string): string[] {
  const program = process.argv[1];
  const folders = [program === undefined ? undefined : dirname(realPathOr(program)), process.cwd(), configFolder];
  return [...new Set(folders.filter((folder) => folder !== undefined))];
}

function realPathOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The program's file no longer exists, e.g. replaced by an update: its folder may still be right.
    return path;
  }
}

export const discoverDriver: DiscoverDriver = async (name, search) => (await loadDriver(name, search)).driver;

/** Loads the driver with the configured `name`, with its package. Rejects with a `DriverLoadError`. */
export async function loadDriver(name: string, search: DriverSearch): Promise<LoadedDriver> {
  const wanted = packageOf(name, search);
  const found = isPath(wanted) ? await readAt(name, wanted, search) : await findInFolders(name, wanted, search.folders);
  return await loadFrom(name, found, packageManagerOf(search.folders));
}

/** Resolves with every driver of the installed packages, unusable ones included, by name. */
export async function listInstalledDrivers(search: DriverSearch): Promise<InstalledDriver[]> {
  const installed = new Map<string, PackageInfo>();
  const folders = new Set(search.folders.flatMap(moduleFolders));
  for (const folder of folders) {
    for (const found of await packagesIn(folder)) {
      if (isJsonObject(found.manifest['nodepool']) && !installed.has(found.folder)) installed.set(found.folder, found);
    }
  }
  const unread: InstalledDriver[] = [];
  const aliasesOf = new Map<string, string[]>();
  const name = ({ folder }: PackageInfo, alias: string): void => {
    aliasesOf.set(folder, [...(aliasesOf.get(folder) ?? []), alias]);
  };
  for (const [alias, target] of search.aliases) {
    if (!isPath(target)) {
      for (const found of installed.values()) if (found.name === target) name(found, alias);
      continue;
    }
    const found = await orError(readAt(alias, target, search));
    if (found instanceof DriverLoadError) unread.push(unreadable(alias, target, search, found));
    else {
      installed.set(found.folder, found);
      name(found, alias);
    }
  }
  const manager = packageManagerOf(search.folders);
  const drivers = await Promise.all(
    [...installed.values()].map((found) => inspect(found, aliasesOf.get(found.folder) ?? [], manager)),
  );
  return [...drivers.flat(), ...unread].sort(
    (a, b) => a.name.localeCompare(b.name) || a.folder.localeCompare(b.folder),
  );
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
  return { name: alias, package: path, version: '', api: undefined, folder, configNames: [alias], error, warnings: [] };
}

/** Resolves with the drivers of a package; with one entry for a package that declares none correctly. */
async function inspect(
  found: PackageInfo,
  aliases: readonly string[],
  manager: PackageManager,
): Promise<InstalledDriver[]> {
  const declared = declaredDrivers(found.manifest);
  const all = declared.length === 0 ? [{ name: found.name, exportName: undefined }] : declared;
  return await Promise.all(
    all.map(async (each) => {
      const configNames = configNamesOf(each, found, aliases);
      const loaded = await orError(loadFrom(each.name, found, manager));
      if (loaded instanceof DriverLoadError) {
        return { ...describe(found, each), configNames, error: loaded, warnings: [] };
      }
      const { driver: _, ...description } = loaded;
      return { ...description, configNames, error: undefined };
    }),
  );
}

/** Returns the names for a driver. The name of a package with several drivers, or an alias, selects none of them. */
function configNamesOf(
  { name, exportName }: DeclaredDriver,
  found: PackageInfo,
  aliases: readonly string[],
): readonly string[] {
  const short = shortNamesOf(found);
  if (exportName === undefined) return [...new Set([found.name, ...aliases, ...short])];
  return aliases.includes(name) || short.includes(name) ? [name] : [];
}

/** Returns the names after `driver:` that mean this package without an entry in `drivers`. */
function shortNamesOf(found: PackageInfo): readonly string[] {
  if (!found.name.startsWith(SHORT_NAME_PACKAGE)) return [];
  const declared = declaredDrivers(found.manifest);
  const shared = declared.filter(({ name }) => SHARED_PACKAGES.get(name) === found.name).map(({ name }) => name);
  return [found.name.slice(SHORT_NAME_PACKAGE.length), ...shared];
}

/** Returns the package or the path for a name. */
function packageOf(name: string, search: DriverSearch): string {
  const alias = search.aliases.get(name);
  if (alias !== undefined && (isPath(alias) || PACKAGE_NAME.test(alias))) return alias;
  if (alias === undefined && isPath(name)) return name;
  if (alias === undefined && name.startsWith('@') && PACKAGE_NAME.test(name)) return name;
  if (alias === undefined && SHORT_NAME.test(name)) {
    return SHARED_PACKAGES.get(name) ?? `${SHORT_NAME_PACKAGE}${name}`;
  }
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
  const meant = didYouMean(name, await installedNames(folders));
  const install = `run: ${packageManagerOf(folders).install(wanted)}`;
  throw new DriverLoadError({
    reason: 'not-installed',
    driver: name,
    problem: `the package ${wanted} of the driver ${name} is not installed in ${folders.join(', ')} or above`,
    remedy: meant === undefined ? install : `${meant} else ${install}`,
  });
}

/** Resolves with the names that the configuration could use for the installed drivers. */
async function installedNames(folders: readonly string[]): Promise<Set<string>> {
  const names = new Set<string>();
  for (const folder of new Set(folders.flatMap(moduleFolders))) {
    for (const found of await packagesIn(folder)) {
      if (!isJsonObject(found.manifest['nodepool'])) continue;
      const short = shortNamesOf(found);
      for (const name of short.length === 0 ? [found.name] : short) names.add(name);
    }
  }
  return names;
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
