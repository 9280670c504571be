/**
 * The repository's URL in published packages: in the field `repository`, which registries require for provenance, and
 * in README links to pages that the package does not contain. `pnpm release:repository URL` writes it when the host is
 * known.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { readWorkspace } from './workspace.js';

const LINK_OUT_OF_PACKAGE = /(\]\()((?:\.\.\/)+[^)\s]+)(\))/g;

/** Returns the URL for package.json from the variables of a public CI; undefined elsewhere. */
export function repositoryUrl(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const server = env['GITHUB_SERVER_URL'];
  const repository = env['GITHUB_REPOSITORY'];
  return server === undefined || repository === undefined ? undefined : `git+${server}/${repository}.git`;
}

/** Writes the URL into every public package of the workspace and resolves with the names of the changed ones. */
export async function writeRepository(root: string, url: string): Promise<string[]> {
  const { packages } = await readWorkspace(root);
  const changed: string[] = [];
  for (const { name, folder, directory, manifest } of packages) {
    const linked = await completeLinks(join(folder, 'README.md'), directory, url);
    const repository = { type: 'git', url, directory };
    const named = JSON.stringify(manifest['repository']) === JSON.stringify(repository);
    if (!named) {
      const { repository: _old, ...rest } = manifest;
      await writeFile(join(folder, 'package.json'), `${JSON.stringify({ ...rest, repository }, undefined, 2)}\n`);
    }
    if (linked || !named) changed.push(name);
  }
  return changed;
}

/** Returns the public packages of the workspace that do not name a repository. */
export async function withoutRepository(root: string): Promise<string[]> {
  const { packages } = await readWorkspace(root);
  return packages.filter(({ manifest }) => manifest['repository'] === undefined).map(({ name }) => name);
}

/** Completes relative links that leave the package with the repository's URL. Returns true if there were any. */
async function completeLinks(file: string, directory: string, url: string): Promise<boolean> {
  const base = `${url.replace(/^git\+/, '').replace(/\.git$/, '')}/blob/HEAD`;
  const text = await readFile(file, 'utf8');
  const completed = text.replaceAll(
    LINK_OUT_OF_PACKAGE,
    (_, open: string, target: string, close: string) => `${open}${base}/${posix.join(directory, target)}${close}`,
  );
  if (completed === text) return false;
  await writeFile(file, completed);
  return true;
}
