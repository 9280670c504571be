/** Checks that all files that users need are published, and no others. */

import { existsSync } from 'node:fs';
import { access, constants, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { isJsonObject, stringsAt, textsAt, type JsonValue } from '@nodepool/core';
import { missingLists } from '../bill-of-materials.js';
import { findings, type Finding } from '../finding.js';
import type { PackedPackage } from '../pack.js';

const REQUIRED = ['package.json', 'README.md', 'LICENSE'] as const;

/** Files for developers of this repository. Templates are exempt, because their users need their tests. */
const DEVELOPMENT_FILES: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/(^|\/)(test|tests|fuzz|__tests__)\//, 'a test'],
  [/\.test\.[cm]?[jt]s$/, 'a test'],
  [/\.tsbuildinfo$/, 'a file of the compiler'],
  [
    /(^|\/)(tsconfig[^/]*\.json|jest\.config\.[cm]?js|eslint\.config\.[cm]?js)$/,
    'a configuration of a development tool',
  ],
  [/(^|\/)\.(?!gitignore$)[^/]+$/, 'a hidden file'],
  [/(^|\/)node_modules\//, 'an installed package'],
  [/\.(log|cpuprofile|tgz)$/, 'a file of a run'],
];
const TEMPLATES = /^templates\//;

export async function checkFiles(
  packed: Pick<PackedPackage, 'source' | 'folder' | 'files' | 'manifest'>,
): Promise<Finding[]> {
  return findings('files', [
    ...missing(packed),
    ...missingLists(packed),
    ...unwanted(packed.files),
    ...(await namedFiles(packed)),
    ...(await sourceMaps(packed)),
  ]);
}

function missing({ source, files }: Pick<PackedPackage, 'source' | 'files'>): string[] {
  const wanted: string[] = [...REQUIRED];
  if (existsSync(join(source.folder, 'CHANGELOG.md'))) wanted.push('CHANGELOG.md');
  return wanted.filter((file) => !files.includes(file)).map((file) => `${file} is not packed`);
}

function unwanted(files: readonly string[]): string[] {
  return files
    .filter((file) => !TEMPLATES.test(file))
    .flatMap((file) => {
      const found = DEVELOPMENT_FILES.find(([pattern]) => pattern.test(file));
      return found === undefined ? [] : [`${file} is ${found[1]}: exclude it with "files"`];
    });
}

/** Checks that files named in package.json exist and that programs are executable. */
async function namedFiles({ folder, manifest }: Pick<PackedPackage, 'folder' | 'manifest'>): Promise<string[]> {
  const problems: string[] = [];
  const own = targetsOf(manifest['imports']).filter((target) => typeof target === 'string' && target.startsWith('.'));
  const targets = [manifest['main'], manifest['types'], ...targetsOf(manifest['exports']), ...own];
  for (const target of new Set(targets)) {
    if (typeof target !== 'string' || target.includes('*')) continue;
    if (!existsSync(join(folder, target))) problems.push(`package.json names ${target}, which is not packed`);
  }
  for (const [name, target] of Object.entries(textsAt(manifest, 'bin'))) {
    problems.push(...(await program(folder, name, target)));
  }
  return problems;
}

function targetsOf(value: JsonValue | undefined): JsonValue[] {
  if (typeof value === 'string') return [value];
  if (!isJsonObject(value)) return [];
  return Object.values(value).flatMap((each) => targetsOf(each));
}

async function program(folder: string, name: string, target: string): Promise<string[]> {
  const path = join(folder, target);
  if (!existsSync(path)) return [`the program ${name} refers to ${target}, which is not packed`];
  const firstLine = (await readFile(path, 'utf8')).split('\n', 1)[0];
  return firstLine === '#!/usr/bin/env node' ? [] : [`${target} must begin with "#!/usr/bin/env node" to be a program`];
}

/** Checks that the sources of packed source maps are also packed, so that debuggers and stack traces can find them. */
async function sourceMaps({ folder, files }: Pick<PackedPackage, 'folder' | 'files'>): Promise<string[]> {
  const maps = files.filter((file) => file.endsWith('.map') && !TEMPLATES.test(file));
  const problems = await Promise.all(maps.map((map) => sourceMap(folder, map)));
  return problems.flat();
}

async function sourceMap(folder: string, map: string): Promise<string[]> {
  const value: unknown = JSON.parse(await readFile(join(folder, map), 'utf8'));
  const sources = (isJsonObject(value) ? stringsAt(value, 'sources') : undefined) ?? [];
  const inline = isJsonObject(value) && Array.isArray(value['sourcesContent']);
  const lost: string[] = [];
  for (const source of sources) {
    const path = join(folder, dirname(map), source);
    const inside = !relative(folder, path).startsWith('..');
    if (!inline && !(inside && (await readable(path)))) lost.push(source);
  }
  return lost.map((source) => `${map} points to ${source}, which is not packed`);
}

async function readable(path: string): Promise<boolean> {
  try {
    await access(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
