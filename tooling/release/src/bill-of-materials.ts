/** The bill of materials of an installation (CycloneDX): its packages, and the libraries that are bundled in them. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { QUIET_INSTALL, run } from './command.js';
import type { PackedPackage } from './pack.js';

const BUNDLE = /^dist\/vendor\/.+\.cjs$/;

/** Returns the file that lists the parts of a bundle. */
const listOf = (bundle: string): string => bundle.replace(/\.cjs$/, '.cdx.json');

/** Returns the problems of a packed package's bundles: each needs its notices and a list of its parts. */
export function missingLists({ files }: Pick<PackedPackage, 'files'>): string[] {
  return files
    .filter((file) => BUNDLE.test(file))
    .flatMap((bundle) => [listOf(bundle), bundle.replace(/\.cjs$/, '.notices.txt')])
    .filter((file) => !files.includes(file))
    .map((file) => `${file} is not packed; tooling/setup/bundle.mjs writes it`);
}

/** Resolves with the parts of all bundles of a package, each with `name`, `version` and `purl`. */
export async function bundledParts({ folder, files }: Pick<PackedPackage, 'folder' | 'files'>): Promise<JsonObject[]> {
  const lists = files.filter((file) => BUNDLE.test(file)).map(listOf);
  const parts = await Promise.all(lists.map(async (file) => componentsOf(await readFile(join(folder, file), 'utf8'))));
  return parts.flat();
}

/** Writes the bill of materials of the installation in `folder`, whose packages contain the bundles of `packed`. */
export async function writeBill(folder: string, packed: readonly PackedPackage[], file: string): Promise<void> {
  const text = await run('npm', ['sbom', '--omit=dev', '--sbom-format=cyclonedx'], { cwd: folder, env: QUIET_INSTALL });
  const bill: unknown = JSON.parse(text);
  if (!isJsonObject(bill)) throw new Error(`npm sbom in ${folder} wrote no object`);
  const bundled = (await Promise.all(packed.map(bundledParts))).flat();
  const known = componentsOf(text);
  const purls = new Set(known.map(({ purl }) => purl));
  const added = bundled.filter(({ purl }, index) => {
    return !purls.has(purl) && bundled.findIndex((other) => other['purl'] === purl) === index;
  });
  await writeFile(file, `${JSON.stringify({ ...bill, components: [...known, ...added] }, undefined, 2)}\n`);
}

function componentsOf(text: string): JsonObject[] {
  const list = JSON.parse(text) as JsonValue;
  const components = isJsonObject(list) ? list['components'] : undefined;
  return Array.isArray(components) ? components.filter(isJsonObject) : [];
}
