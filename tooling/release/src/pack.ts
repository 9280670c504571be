/** Packs public packages as they would be published and reads the result. */

import { mkdir, readdir, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type { JsonObject } from '@nodepool/core';
import { run } from './command.js';
import { readManifest, type PublicPackage } from './workspace.js';

/** A package as users receive it. */
export interface PackedPackage {
  readonly source: PublicPackage;
  /** Path of the .tgz. */
  readonly tarball: string;
  /** Folder with the unpacked files. */
  readonly folder: string;
  /** package.json as it would be published. */
  readonly manifest: JsonObject;
  /** Paths within the package, with `/`. */
  readonly files: readonly string[];
  /** Total unpacked size. */
  readonly bytes: number;
}

/** Returns the name of a package's file, e.g. `nodepool-core-1.0.0.tgz`. */
export function tarballName({ name, version }: PublicPackage): string {
  return `${shortName(name)}-${version}.tgz`;
}

/**
 * Packs built packages of the workspace in `root` into the folder. Resolves with the paths of the files. One process
 * packs all of them, because its start takes longer than a package.
 */
export async function packTarballs(root: string, sources: readonly PublicPackage[], into: string): Promise<string[]> {
  if (sources.length === 0) return [];
  const filters = sources.flatMap(({ name }) => ['--filter', name]);
  await run('pnpm', ['--recursive', ...filters, 'pack', '--out', join(into, '%s-%v.tgz')], { cwd: root });
  return sources.map((source) => join(into, tarballName(source)));
}

/** Packs built packages of the workspace in `root` into `into` and unpacks them there. */
export async function pack(
  root: string,
  sources: readonly PublicPackage[],
  into: string,
): Promise<readonly PackedPackage[]> {
  await mkdir(into, { recursive: true });
  const tarballs = await packTarballs(root, sources, into);
  return await Promise.all(
    sources.map(
      async (source, index) => await unpacked(source, tarballs[index] ?? '', join(into, shortName(source.name))),
    ),
  );
}

async function unpacked(source: PublicPackage, tarball: string, into: string): Promise<PackedPackage> {
  await mkdir(into, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', into], { cwd: into });
  const folder = join(into, 'package');
  const { files, bytes } = await filesBelow(folder);
  return { source, tarball, folder, manifest: await readManifest(folder), files, bytes };
}

function shortName(name: string): string {
  return name.replace('@', '').replace('/', '-');
}

async function filesBelow(folder: string): Promise<{ files: string[]; bytes: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  const files = paths.map((path) => relative(folder, path).split(sep).join('/')).sort();
  return { files, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}
