/**
 * A copy of the checkout: what is published is packed from a fresh build, never from what earlier builds have left in
 * `dist`, and what changes files (versions, changelogs, tags) does so where it does no harm.
 */

import { existsSync } from 'node:fs';
import { cp, readdir, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { objectAt, stringAt } from '@nodepool/core';
import { run } from './command.js';
import { readWorkspace, type PublicPackage, type Workspace } from './workspace.js';

/** Of the commits and tags in a copy. */
const NOBODY = {
  GIT_AUTHOR_NAME: 'Release rehearsal',
  GIT_AUTHOR_EMAIL: 'rehearsal@localhost',
  GIT_COMMITTER_NAME: 'Release rehearsal',
  GIT_COMMITTER_EMAIL: 'rehearsal@localhost',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
} as const;

/** What is made from the files of a checkout, and never published as it lies there. */
const MADE = new Set(['.git', '.tools', '.turbo', 'coverage', 'dist', 'dist-test', 'logs', 'node_modules', 'site']);

/**
 * Copies a checkout, without what was installed or built there, to a new folder, as a repository of its own with one
 * commit. Dependencies are those that are installed in `root`; nothing is built.
 */
export async function copyWorkspace(root: string, into: string): Promise<Workspace> {
  await cp(root, into, { recursive: true, verbatimSymlinks: true, filter: (path) => !MADE.has(basename(path)) });
  await linkDependencies(root, into);
  await git(['init', '--quiet', '--initial-branch', 'main'], into);
  await commit(into, 'A copy to work on');
  return await readWorkspace(into);
}

/** Commits everything in a copy. */
export async function commit(folder: string, message: string): Promise<void> {
  await git(['add', '--all'], folder);
  await git(['commit', '--quiet', '--allow-empty', '--no-gpg-sign', '--message', message], folder);
}

/** The commit that a copy is at, to come back to with `resetTo`. */
export async function currentCommit(folder: string): Promise<string> {
  return (await run('git', ['rev-parse', 'HEAD'], { cwd: folder, env: NOBODY })).trim();
}

/** Files below `path` that are not as they were in a commit. */
export async function changedSince(folder: string, commitId: string, path: string): Promise<string[]> {
  const output = await run('git', ['diff', '--name-only', commitId, '--', path], { cwd: folder, env: NOBODY });
  return output.split('\n').filter((line) => line !== '');
}

/** Takes a copy back to a commit, whatever has changed since. */
export async function resetTo(folder: string, commitId: string): Promise<void> {
  await git(['reset', '--quiet', '--hard', commitId], folder);
  await git(['clean', '--quiet', '--force', '-d'], folder);
}

/** Compiles packages of a copy, and what they need; then bundles the dependencies that a package contains. */
export async function build(root: string, packages: readonly PublicPackage[]): Promise<void> {
  await run(join(root, 'node_modules', '.bin', 'tsc'), ['-b', ...packages.map(({ folder }) => folder)], { cwd: root });
  for (const { folder, manifest } of packages) {
    if (stringAt(objectAt(manifest, 'scripts') ?? {}, 'bundle') === undefined) continue;
    await run('npm', ['run', '--silent', 'bundle'], { cwd: folder });
  }
}

/** The environment for programs that make commits and tags in a copy. */
export function asNobody(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { ...NOBODY, ...env };
}

async function git(args: readonly string[], cwd: string): Promise<void> {
  await run('git', args, { cwd, env: NOBODY });
}

/** pnpm links with relative paths: in the copy, the links of a package lead to the copies of its neighbours. */
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
