/** Finds the files of a defect, also if they have been moved since the defect was written. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Mutation } from './mutation.js';

/** The files of a defect, from the root of the repository. */
export interface Places {
  readonly file: string;
  readonly tests: readonly string[];
  /** Files that are not where the defect says, as sentences. */
  readonly moved: readonly string[];
}

/** A defect that does not fit the sources. */
export class MisfitError extends Error {
  constructor({ id }: Mutation, reason: string) {
    super(`mutation ${id}: ${reason}; adapt it in tooling/mutate/src/mutations`);
    this.name = 'MisfitError';
  }
}

/** Returns the files of a defect. Throws a `MisfitError` if they cannot be determined. */
export function placesOf(mutation: Mutation, root: string): Places {
  const file = sourceOf(mutation, root);
  const tests = mutation.tests.map((test) => testOf(mutation, test, file, root));
  const pairs = [mutation.file, ...mutation.tests].map((old, index) => [old, [file, ...tests][index]] as const);
  return { file, tests, moved: pairs.flatMap(([old, now]) => (old === now ? [] : `${old} is now ${now}`)) };
}

function sourceOf(mutation: Mutation, root: string): string {
  const { file, find } = mutation;
  const count = existsSync(join(root, file)) ? countIn(join(root, file), find) : 0;
  if (count === 1) return file;
  if (count > 1) throw new MisfitError(mutation, `its text occurs ${count} times in ${file}`);
  const folder = packageOf(file);
  const inPackage = filesBelow(`${folder}/src`, root).filter((each) => countIn(join(root, each), find) === 1);
  const ofSameName = (files: readonly string[]): readonly string[] =>
    files.filter((each) => basename(each) === basename(file));
  const [moved, second] = ofSameName(inPackage).length > 0 ? ofSameName(inPackage) : inPackage;
  if (second !== undefined) throw new MisfitError(mutation, `its text occurs in ${inPackage.join(' and ')}`);
  if (moved !== undefined) return moved;
  const inOthers = ofSameName(
    readdirSync(join(root, 'packages')).flatMap((name) => filesBelow(`packages/${name}/src`, root)),
  );
  const fitting = inOthers.filter((each) => countIn(join(root, each), find) === 1);
  const [other, ...more] = fitting;
  if (other === undefined || more.length > 0) throw new MisfitError(mutation, `its text does not occur in ${folder}`);
  return other;
}

function testOf(mutation: Mutation, test: string, source: string, root: string): string {
  if (existsSync(join(root, test))) return test;
  const folders = [...new Set([packageOf(test), packageOf(source)])];
  for (const folder of folders) {
    const [found, second] = filesBelow(`${folder}/test`, root).filter((each) => basename(each) === basename(test));
    if (found !== undefined && second === undefined) return found;
  }
  throw new MisfitError(mutation, `there is no ${test}`);
}

/** Returns the folder of the package of a file. */
export function packageOf(file: string): string {
  const [, folder = dirname(file)] = /^([^/]+\/[^/]+)\//.exec(file) ?? [];
  return folder;
}

function filesBelow(folder: string, root: string): readonly string[] {
  if (!existsSync(join(root, folder))) return [];
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`);
}

function countIn(path: string, text: string): number {
  return readFileSync(path, 'utf8').split(text).length - 1;
}
