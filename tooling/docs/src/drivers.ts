/** The drivers of this repository: all packages that declare one. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { declaredDrivers, discoverDriver } from '@nodepool/config';
import { isJsonObject, type Driver } from '@nodepool/core';
import { REPOSITORY } from './repository.js';

const PACKAGES = 'packages';

export interface DriverPackage {
  /** Name in configurations. */
  readonly name: string;
  /** Relative to the repository. */
  readonly folder: string;
}

/** Returns the drivers in alphabetical order of their packages. */
export function driverPackages(): readonly DriverPackage[] {
  const folders = readdirSync(join(REPOSITORY, PACKAGES)).sort();
  return folders.flatMap((folder) =>
    driverNames(join(REPOSITORY, PACKAGES, folder, 'package.json')).map((name) => ({
      name,
      folder: `${PACKAGES}/${folder}`,
    })),
  );
}

/** Loads a driver as a launcher does. Rejects with a `DriverLoadError`, e.g. if it is not built. */
export async function loadDriver({ name, folder }: DriverPackage): Promise<Driver> {
  const aliases = new Map([[name, `./${folder}`]]);
  return discoverDriver(name, { aliases, configFolder: REPOSITORY, folders: [] });
}

function driverNames(file: string): readonly string[] {
  if (!existsSync(file)) return [];
  const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return isJsonObject(manifest) ? declaredDrivers(manifest).map(({ name }) => name) : [];
}
