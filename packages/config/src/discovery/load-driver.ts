/** Loads a driver of a package that was found, and remembers the drivers that run in this process. */

import { createRequire } from 'node:module';
import { dirname, sep } from 'node:path';
import { reasonOf, type Driver } from '@nodepool/core';
import { didYouMean } from '../suggest.js';
import { checkApi, copiesOfCore, CORE_PACKAGE, labelOf, metadataOf } from './compatibility.js';
import { declaredDrivers, type DeclaredDriver } from './declared.js';
import { DriverLoadError } from './errors.js';
import { exportedDriver, loadModule } from './load.js';
import type { PackageManager } from './package-manager.js';
import { readPackage, type PackageInfo } from './packages.js';

export interface DriverPackage {
  /** Name of the driver in its package.json. */
  readonly name: string;
  readonly package: string;
  /** Version of the running code, which is older than the installed one after an upgrade until a restart. */
  readonly version: string;
  /** The driver API version that the package was written for; undefined if not declared. */
  readonly api: number | undefined;
  readonly folder: string;
  /** Problems that do not prevent its use. */
  readonly warnings: readonly string[];
}

/** A loaded driver and its package. */
export interface LoadedDriver extends DriverPackage {
  readonly driver: Driver;
}

const packages = new WeakMap<Driver, DriverPackage>();
/** The loaded drivers of this process, by `PackageInfo.lookup` and the name of the driver. */
const running = new Map<string, LoadedDriver>();

/** Returns the package of a driver as of its last load; undefined if it comes from no package. */
export function packageOfDriver(driver: Driver): DriverPackage | undefined {
  return packages.get(driver);
}

/** Loads a driver of a package, or returns the one that runs already: Node.js loads a module once. */
export async function loadFrom(name: string, found: PackageInfo, manager: PackageManager): Promise<LoadedDriver> {
  const declared = declaredDrivers(found.manifest);
  const wanted = declared.find((each) => each.exportName === undefined || each.name === name);
  const key = `${found.lookup}\0${wanted?.exportName === undefined ? '' : name}`;
  const before = running.get(key);
  if (before !== undefined && before.version !== found.version) {
    const { version } = before;
    const warning = `version ${found.version} of ${found.name} is installed, and ${version} runs; restart the program to use ${found.version}`;
    return remember({ ...before, warnings: [warning] });
  }
  const core = await readPackage(coreFolder());
  checkApi(name, found, core, manager);
  if (wanted === undefined) throw severalDrivers(name, found, declared);
  const driver = await driverIn(name, found, wanted, manager);
  if (driver === undefined) {
    const { exportName } = wanted;
    throw new DriverLoadError({
      reason: 'not-a-driver',
      driver: name,
      problem:
        exportName === undefined
          ? `${labelOf(found)} exports no driver, neither as \`default\` nor as \`driver\``
          : `${labelOf(found)} exports no driver as \`${exportName}\``,
      remedy: 'report it to the authors of the package, or install another version of it',
    });
  }
  if (driver.name !== wanted.name) {
    throw new DriverLoadError({
      reason: 'broken',
      driver: name,
      problem: `${labelOf(found)} declares the driver ${wanted.name} in its package.json, but exports the driver ${driver.name}`,
      remedy: 'report it to the authors of the package, or install another version of it',
    });
  }
  const loaded = { ...describe(found, wanted), driver, warnings: await copiesOfCore(found, core, manager) };
  running.set(key, loaded);
  return remember(loaded);
}

/** Returns the error for a name that is none of the drivers of its package. */
function severalDrivers(name: string, found: PackageInfo, declared: readonly DeclaredDriver[]): DriverLoadError {
  const names = declared.map((each) => each.name);
  const meant = didYouMean(name, names);
  return new DriverLoadError({
    reason: 'not-a-driver',
    driver: name,
    problem: `${labelOf(found)} has the drivers ${names.join(', ')}, and none with the name ${JSON.stringify(name)}`,
    remedy: `${meant === undefined ? '' : `${meant} else `}write the name of one of them`,
  });
}

function remember(loaded: LoadedDriver): LoadedDriver {
  const { driver, ...description } = loaded;
  packages.set(driver, description);
  return loaded;
}

async function driverIn(
  name: string,
  found: PackageInfo,
  { exportName }: DeclaredDriver,
  manager: PackageManager,
): Promise<Driver | undefined> {
  try {
    return exportedDriver(await loadModule(found), exportName);
  } catch (error) {
    throw new DriverLoadError({
      reason: 'broken',
      driver: name,
      problem: `${labelOf(found)} fails to load: ${reasonOf(error)}`,
      remedy: `${repairOf(found, manager)} or report it to its authors`,
      cause: error,
    });
  }
}

/** Returns the remedy for a package with missing or damaged files. One outside `node_modules` is a checkout. */
function repairOf({ folder, name }: PackageInfo, manager: PackageManager): string {
  if (!folder.split(sep).includes('node_modules')) return `build it (in ${folder})`;
  return `install it again (${manager.install(name)})`;
}

/** Returns the description of a driver of a package. */
export function describe(found: PackageInfo, { name }: DeclaredDriver): Omit<DriverPackage, 'warnings'> {
  const { api } = metadataOf(found);
  return {
    name,
    package: found.name,
    version: found.version,
    api: typeof api === 'number' ? api : undefined,
    folder: found.folder,
  };
}

/** Returns the folder of the copy of core that this process uses. */
function coreFolder(): string {
  return dirname(createRequire(__filename).resolve(`${CORE_PACKAGE}/package.json`));
}
