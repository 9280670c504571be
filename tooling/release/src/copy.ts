/**
 * Copies of the checkout. Packages are packed from a fresh build instead of an earlier `dist`, and changes of versions,
 * changelogs and tags do not affect the checkout.
 */

import { existsSync } from 'node:fs';
import { cp, readdir, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { objectAt, stringAt } from '@nodepool/core';
import { run } from './command.js';
import { readWorkspace, type PublicPackage, type Workspace } from './workspace.js';

/** Author of the commits and tags in a copy. */
const COMMIT_AUTHOR = {
  GIT_AUTHOR_NAME: 'Release rehearsal',
  GIT_AUTHOR_EMAIL: 'rehearsal@localhost',
  GIT_COMMITTER_NAME: 'Release rehearsal',
  GIT_COMMITTER_EMAIL: 'rehearsal@localhost',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
} as const;

/** Generated files of a checkout, which are never published as they are. */
const GENERATED = new Set([
  '.git',
  '.tools',
  '.turbo',
  'coverage',
  'dist',
  'dist-test',
  'logs',
  'node_modules',
  'site',
]);

/**
 * Copies a checkout without installed or built files to a new folder, as a repository with one commit. Dependencies are
 * those installed in `root`; nothing is built.
 */
export async function copyWorkspace(root: string, into: string): Promise<Workspace> {
  await cp(root, into, { recursive: true, verbatimSymlinks: true, filter: (path) => !GENERATED.has(basename(path)) });
  await linkDependencies(root, into);
  await git(['init', '--quiet', '--initial-branch', 'main'], into);
  await commit(into, 'A copy to work on');
  return await readWorkspace(into);
}

/** Commits all changes in a copy. */
export async function commit(folder: string, message: string): Promise<void> {
  await git(['add', '--all'], folder);
  await git(['commit', '--quiet', '--allow-empty', '--no-gpg-sign', '--message', message], folder);
}

/** Returns the current commit of a copy, for `resetTo`. */
export async function currentCommit(folder: string): Promise<string> {
  return (await run('git', ['rev-parse', 'HEAD'], { cwd: folder, env: COMMIT_AUTHOR })).trim();
}

/** Returns the files below `path` that differ from a commit. */
export async function changedSince(folder: string, commitId: string, path: string): Promise<string[]> {
  const output = await run('git', ['diff', '--name-only', commitId, '--', path], { cwd: folder, env: COMMIT_AUTHOR });
  return output.split('\n').filter((line) => line !== '');
}

/** Resets a copy to a commit and discards all changes. */
export async function resetTo(folder: string, commitId: string): Promise<void> {
  await git(['reset', '--quiet', '--hard', commitId], folder);
  await git(['clean', '--quiet', '--force', '-d'], folder);
}

/** Compiles packages of a copy and their dependencies, then runs the scripts that add other files to `dist`. */
export async function build(root: string, packages: readonly PublicPackage[]): Promise<void> {
  await run(join(root, 'node_modules', '.bin', 'tsc'), ['-b', ...packages.map(({ folder }) => folder)], { cwd: root });
  for (const { folder, manifest } of packages) {
    if (stringAt(objectAt(manifest, 'scripts') ?? {}, 'bundle') === undefined) continue;
    await run('npm', ['run', '--silent', 'bundle'], { cwd: folder });
  }
}

/** Returns the environment for programs that create commits and tags in a copy. */
export function withCommitAuthor(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { ...COMMIT_AUTHOR, ...env };
}

async function git(args: readonly string[], cwd: string): Promise<void> {
  await run('git', args, { cwd, env: COMMIT_AUTHOR });
}

/** Recreates pnpm's relative links, so that packages of the copy link to each other. */
async function linkDependencies(root: string, into: string): Promise<void> {
  await symlink(join(root, 'node_modules'), join(into, 'node_modules'));
  for (const group of ['packages', 'tooling']) {
    for (const name of await readdir(join(root, group))) {
      const modules = join(group, name, 'node_modules');
      if (!existsSync(join(root, modules)) || !existsSync(join(into, group, name))) continue;
      await cp(join(root, modules), join(into, modules), { recursive: true, verbatimSymlinks: true });
    }
  }
}
