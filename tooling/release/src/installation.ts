/** A package installed alone in a clean folder, as a site without other packages would have it. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject, objectAt, stringAt } from '@nodepool/core';
import type { InstalledPackage } from './checks/licences.js';
import { QUIET_INSTALL, run } from './command.js';
import type { PackedPackage } from './pack.js';
import { readManifest } from './workspace.js';

export interface Installation {
  readonly folder: string;
  /** All packages in its `node_modules`, including indirect dependencies. */
  readonly packages: readonly InstalledPackage[];
}

/**
 * Installs packed packages with npm in a new folder, without install scripts. Their workspace dependencies must be
 * among them; all others come from npm's configured registry.
 */
export async function installPacked(packed: readonly PackedPackage[], folder: string): Promise<Installation> {
  await mkdir(folder, { recursive: true });
  const dependencies = Object.fromEntries(packed.map(({ source, tarball }) => [source.name, `file:${tarball}`]));
  const manifest = { name: 'clean-folder', version: '1.0.0', private: true, dependencies };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  await run('npm', ['install', '--ignore-scripts', '--engine-strict'], {
    cwd: folder,
    env: { ...QUIET_INSTALL, npm_config_omit_lockfile_registry_resolved: 'false' },
  });
  return { folder, packages: await packagesBelow(folder) };
}

/** Returns the packages that npm recorded. */
async function packagesBelow(folder: string): Promise<InstalledPackage[]> {
  const lock: unknown = JSON.parse(await readFile(join(folder, 'node_modules', '.package-lock.json'), 'utf8'));
  const entries = Object.entries((isJsonObject(lock) ? objectAt(lock, 'packages') : undefined) ?? {});
  return await Promise.all(
    entries.map(async ([path, entry]) => {
      const noted = isJsonObject(entry) ? entry : {};
      return {
        name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
        version: stringAt(noted, 'version') ?? '',
        manifest: await readManifest(join(folder, path)),
        resolved: stringAt(noted, 'resolved'),
        integrity: stringAt(noted, 'integrity'),
      };
    }),
  );
}
