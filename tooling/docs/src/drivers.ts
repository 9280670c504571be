/** The drivers of this repository: whatever package says that it is one. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { discoverDriver } from '@nodepool/config';
import { isJsonObject, type Driver } from '@nodepool/core';
import { REPOSITORY } from './repository.js';

const PACKAGES = 'packages';

export interface DriverPackage {
  /** As configurations call it. */
  readonly name: string;
  /** Relative to the repository. */
  readonly folder: string;
}

/** In alphabetical order. */
export function driverPackages(): readonly DriverPackage[] {
  const folders = readdirSync(join(REPOSITORY, PACKAGES)).sort();
  return folders.flatMap((folder) => {
    const name = driverName(join(REPOSITORY, PACKAGES, folder, 'package.json'));
    return name === undefined ? [] : [{ name, folder: `${PACKAGES}/${folder}` }];
  });
}

/** Loads a driver as a launcher does. Rejects with a `DriverLoadError`, e.g. when it is not built. */
export async function loadDriver({ name, folder }: DriverPackage): Promise<Driver> {
  const aliases = new Map([[name, `./${folder}`]]);
  return discoverDriver(name, { aliases, configFolder: REPOSITORY, folders: [] });
}

function driverName(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const manifest: unknown = JSON.parse(readFileSync(file, 'utf8'));
  const about = isJsonObject(manifest) ? manifest['nodepool'] : undefined;
  const name = isJsonObject(about) ? about['driver'] : undefined;
  return typeof name === 'string' ? name : undefined;
}
