/** Packs many packages into one folder, from which a site installs them without a registry. */

import { mkdir, readdir } from 'node:fs/promises';
import { packTarballs, tarballName } from './pack.js';
import type { PublicPackage } from './workspace.js';

/**
 * Packs built packages of the workspace in `root` into the folder, which is created if it is missing. Resolves with the
 * paths of the files. Rejects, writing nothing, if the folder has other packages: `npm install DIR/*.tgz` would install
 * those, too.
 */
export async function packAll(root: string, packages: readonly PublicPackage[], into: string): Promise<string[]> {
  await mkdir(into, { recursive: true });
  const expected = new Set(packages.map(tarballName));
  const others = (await readdir(into)).filter((name) => name.endsWith('.tgz') && !expected.has(name));
  if (others.length > 0) {
    const [first = ''] = others.sort();
    throw new Error(`${into} has ${others.length} other packages (${first}…): delete them, or name another folder`);
  }
  return await packTarballs(root, packages, into);
}
