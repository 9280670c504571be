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

/** Packs a built package into `into` and unpacks it there. */
export async function pack(source: PublicPackage, into: string): Promise<PackedPackage> {
  const short = source.name.replace('@', '').replace('/', '-');
  const tarball = join(into, `${short}-${source.version}.tgz`);
  const unpacked = join(into, short);
  await mkdir(unpacked, { recursive: true });
  await run('pnpm', ['pack', '--out', tarball], { cwd: source.folder });
  await run('tar', ['-xzf', tarball, '-C', unpacked], { cwd: into });
  const folder = join(unpacked, 'package');
  const { files, bytes } = await filesBelow(folder);
  return { source, tarball, folder, manifest: await readManifest(folder), files, bytes };
}

async function filesBelow(folder: string): Promise<{ files: string[]; bytes: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  const files = paths.map((path) => relative(folder, path).split(sep).join('/')).sort();
  return { files, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}
