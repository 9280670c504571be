/**
 * Loads a driver again when another version of it lies where the one before was, so that a reload of the configuration is
 * enough after an upgrade. Old and new live side by side: whoever holds the old one goes on with it.
 *
 * That works for CommonJS, whose cache can be cleared. Node.js keeps an ES module for as long as the process lives.
 */

import { sep } from 'node:path';
import type { Driver } from '../api.js';
import type { PackageInfo } from './packages.js';

export interface FreshDriver {
  /** Undefined: the package exports none. */
  readonly driver: Driver | undefined;
  /** The version that it is of; not the installed one when that cannot be loaded before a restart. */
  readonly version: string;
}

/** A driver that was loaded from a folder. */
interface Loaded extends FreshDriver {
  /** Files that came into the cache with it. */
  readonly files: ReadonlySet<string>;
}

const loadedFrom = new Map<string, Loaded>();

/** The driver of a package, in its installed version where that is possible. `load` makes Node.js load it. */
export async function freshDriver(
  found: PackageInfo,
  coreFolder: string | undefined,
  load: () => Promise<Driver | undefined>,
): Promise<FreshDriver> {
  const before = loadedFrom.get(found.folder);
  if (before !== undefined && before.version !== found.version) forget(before.files, found.folder, coreFolder);
  const known = new Set(Object.keys(require.cache));
  const driver = await load();
  if (before !== undefined && before.driver === driver) return before;
  const files = new Set(Object.keys(require.cache).filter((file) => !known.has(file)));
  const now: Loaded = { version: found.version, driver, files };
  loadedFrom.set(found.folder, now);
  return now;
}

/** Core is shared, and stays; native code cannot be loaded a second time. */
function forget(files: ReadonlySet<string>, folder: string, coreFolder: string | undefined): void {
  for (const file of Object.keys(require.cache)) {
    const theirs = files.has(file) || file.startsWith(folder + sep);
    const shared = coreFolder !== undefined && file.startsWith(coreFolder + sep);
    // The cache is an object with a key for each file; there is no other way to take one out.
    if (theirs && !shared && !file.endsWith('.node')) Reflect.deleteProperty(require.cache, file);
  }
}
