/**
 * The field `repository` of published packages: registries take provenance only from a package that names the repository
 * that it is built from. Whoever hosts the repository decides its address, so it is written when that is known:
 * `pnpm release:repository URL`.
 */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readWorkspace } from './workspace.js';

/** The address as package.json has it, of what a public CI says of itself; undefined elsewhere. */
export function repositoryUrl(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const server = env['GITHUB_SERVER_URL'];
  const repository = env['GITHUB_REPOSITORY'];
  return server === undefined || repository === undefined ? undefined : `git+${server}/${repository}.git`;
}

/** Writes the field into every public package of the workspace; resolves with the names of those that changed. */
export async function writeRepository(root: string, url: string): Promise<string[]> {
  const { packages } = await readWorkspace(root);
  const changed: string[] = [];
  for (const { name, folder, directory, manifest } of packages) {
    const repository = { type: 'git', url, directory };
    if (JSON.stringify(manifest['repository']) === JSON.stringify(repository)) continue;
    const { repository: _old, ...rest } = manifest;
    await writeFile(join(folder, 'package.json'), `${JSON.stringify({ ...rest, repository }, undefined, 2)}\n`);
    changed.push(name);
  }
  return changed;
}
