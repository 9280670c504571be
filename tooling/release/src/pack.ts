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

/** Packs a built package into the folder. Resolves with the path of the file. */
export async function packTarball(source: PublicPackage, into: string): Promise<string> {
  const tarball = join(into, tarballName(source));
  await run('pnpm', ['pack', '--out', tarball], { cwd: source.folder });
  return tarball;
}

/** Packs a built package into `into` and unpacks it there. */
export async function pack(source: PublicPackage, into: string): Promise<PackedPackage> {
  const unpacked = join(into, shortName(source.name));
  await mkdir(unpacked, { recursive: true });
  const tarball = await packTarball(source, into);
  await run('tar', ['-xzf', tarball, '-C', unpacked], { cwd: into });
  const folder = join(unpacked, 'package');
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
