/** Updates versions and changelogs with changesets in a copy of the workspace. */

import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { major } from 'semver';
import { run } from './command.js';
import { withCommitAuthor, commit } from './copy.js';
import { readWorkspace } from './workspace.js';

/** package.json of a new driver. */
const TEMPLATE = 'packages/create-driver/templates/common/_package.json';

export type Bump = 'patch' | 'minor' | 'major';

/** Adds a changeset like `pnpm changeset`. */
export async function addChangeset(root: string, bumps: Readonly<Record<string, Bump>>, text: string): Promise<void> {
  const lines = Object.entries(bumps).map(([name, bump]) => `'${name}': ${bump}`);
  const file = join(root, '.changeset', `${randomUUID()}.md`);
  await writeFile(file, ['---', ...lines, '---', '', text, ''].join('\n'));
}

/**
 * Applies the changesets to versions and changelogs, and commits the result. Resolves with the new and the changed
 * packages.
 */
export async function applyChangesets(root: string): Promise<ReadonlyMap<string, string>> {
  // Separates earlier changes from the new versions.
  await commit(root, 'Changesets');
  const before = await versionsOf(root);
  await updateVersions(root);
  await commit(root, 'Versions');
  const after = await versionsOf(root);
  return new Map([...after].filter(([name, version]) => before.get(name) !== version));
}

/** Updates versions, changelogs, and the ranges that new drivers start with. */
export async function updateVersions(root: string): Promise<void> {
  await run(join(root, 'node_modules', '.bin', 'changeset'), ['version'], { cwd: root, env: withCommitAuthor() });
  const versions = await versionsOf(root);
  const file = join(root, TEMPLATE);
  const template = await readFile(file, 'utf8');
  const updated = template.replaceAll(/"(@nodepool\/[\w-]+)": "\^\d+"/g, (entry, name: string) => {
    const version = versions.get(name);
    return version === undefined ? entry : `"${name}": "^${major(version)}"`;
  });
  await writeFile(file, updated);
}

async function versionsOf(root: string): Promise<Map<string, string>> {
  const { packages } = await readWorkspace(root);
  return new Map(packages.map(({ name, version }) => [name, version]));
}
