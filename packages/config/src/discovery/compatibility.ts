/** Checks that a driver package works with this copy of core, and describes the remedy otherwise. */

import { isJsonObject, type JsonObject, DRIVER_API } from '@nodepool/core';
import { declaredDrivers } from './declared.js';
import { DriverLoadError } from './errors.js';
import type { PackageManager } from './package-manager.js';
import { findPackage, type PackageInfo } from './packages.js';

export const CORE_PACKAGE = '@nodepool/core';

export function metadataOf(found: PackageInfo): JsonObject {
  const metadata = found.manifest['nodepool'];
  return isJsonObject(metadata) ? metadata : {};
}

/** Returns the name of a package for messages. */
export function labelOf(found: PackageInfo): string {
  return `${found.name}@${found.version} (${found.folder})`;
}

/** Throws if the package is not a driver, or is one for another version of the API. */
export function checkApi(
  name: string,
  found: PackageInfo,
  core: PackageInfo | undefined,
  manager: PackageManager,
): void {
  const { api } = metadataOf(found);
  if (declaredDrivers(found.manifest).length === 0 || typeof api !== 'number' || !Number.isInteger(api)) {
    throw new DriverLoadError({
      reason: 'not-a-driver',
      driver: name,
      problem:
        `${labelOf(found)} is not a driver: its package.json has neither "nodepool": {"driver": <name>, "api": <integer>} ` +
        'nor "nodepool": {"drivers": {<name>: <export>}, "api": <integer>}',
      remedy: 'name another package, or install a version of it that is a driver',
    });
  }
  if (api === DRIVER_API) return;
  const ours = `this Nodepool (${CORE_PACKAGE} ${core?.version ?? 'of unknown version'}) has version ${DRIVER_API}`;
  throw new DriverLoadError({
    reason: 'api-mismatch',
    driver: name,
    problem: `${labelOf(found)} is written for version ${api} of the driver API, and ${ours}`,
    remedy: api < DRIVER_API ? updateRemedy(found, manager) : olderRemedy(found, manager),
  });
}

function updateRemedy(found: PackageInfo, manager: PackageManager): string {
  const newer = `install a newer version of the driver, one for driver API ${DRIVER_API}`;
  return `${newer}: ${manager.install(`${found.name}@latest`)}`;
}

/** Returns the remedy for a driver that is too new. Before 1.0.0 any version can have a new API, later a major one. */
function olderRemedy(found: PackageInfo, manager: PackageManager): string {
  const peers = found.manifest['peerDependencies'];
  const range = isJsonObject(peers) ? peers[CORE_PACKAGE] : undefined;
  const needs = typeof range === 'string' ? ` to one with ${CORE_PACKAGE} ${range}` : '';
  const below = /^[1-9]\d*/.exec(found.version)?.[0] ?? found.version;
  const older = `install an older version of the driver, one for driver API ${DRIVER_API}: ${manager.install(`"${found.name}@<${below}"`)}`;
  return `${older}, or update Nodepool${needs}: ${manager.install('@nodepool/launcher@latest')}`;
}

/** Resolves with warnings if the driver has its own copy of core, whose errors and types are not recognized here. */
export async function copiesOfCore(
  found: PackageInfo,
  core: PackageInfo | undefined,
  manager: PackageManager,
): Promise<string[]> {
  const theirs = await findPackage(CORE_PACKAGE, found.folder).catch(() => undefined);
  if (theirs === undefined || core === undefined || theirs.folder === core.folder) return [];
  const both = `${theirs.version} in ${theirs.folder}, beside ${core.version} in ${core.folder}`;
  if (!sameMajor(theirs.version, core.version)) {
    return [
      `${found.name} uses ${CORE_PACKAGE} of another major version, ${both}; objects of one copy may not be usable ` +
        `by the other. Install a version of the driver for ${CORE_PACKAGE} ${core.version}: ${manager.install(`${found.name}@latest`)}`,
    ];
  }
  return [
    `${found.name} uses a second copy of ${CORE_PACKAGE}, ${both}; run: ${manager.dedupe()} ` +
      '(the driver must have it as a peer dependency)',
  ];
}

function sameMajor(one: string, other: string): boolean {
  return majorOf(one) === majorOf(other);
}

/** Returns the major part of a semantic version (semver.org); other texts as they are. */
function majorOf(version: string): string {
  return /^v?(\d+)\.\d+\.\d+(?:[-+].*)?$/.exec(version)?.[1] ?? version;
}
