/** The exported names of published packages according to their declarations. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject, objectAt, stringAt } from '@nodepool/core';
import ts from 'typescript';
import type { PublicPackage, Workspace } from './workspace.js';

const FOLDER = 'tooling/release/public-names';

const OPTIONS: ts.CompilerOptions = {
  module: ts.ModuleKind.Node16,
  moduleResolution: ts.ModuleResolutionKind.Node16,
  skipLibCheck: true,
  types: [],
};

/** Returns the path of a package's reviewed list in the workspace. */
function namesFile(workspace: Workspace, { directory }: PublicPackage): string {
  return join(workspace.root, FOLDER, `${directory.replace(/^packages\//, '')}.txt`);
}

/**
 * Returns the lists of built packages, by name: a line for each entry point, followed by one for each of its names. All
 * packages share one program, so that their common declarations are parsed once.
 */
export function listNames(packages: readonly PublicPackage[]): ReadonlyMap<string, string> {
  const entries = packages.flatMap((each) =>
    Object.entries(objectAt(each.manifest, 'exports') ?? {}).flatMap(([path, target]) => {
      const types = isJsonObject(target) ? stringAt(target, 'types') : undefined;
      return types === undefined
        ? []
        : [{ of: each.name, entry: join(each.name, path), file: join(each.folder, types) }];
    }),
  );
  const program = ts.createProgram(
    entries.map(({ file }) => file),
    OPTIONS,
  );
  const lists = packages.map(({ name }): [string, string] => {
    const own = entries.filter(({ of }) => of === name);
    return [name, own.map(({ entry, file }) => `${entry}\n${namesIn(program, file)}`).join('\n')];
  });
  return new Map(lists);
}

function namesIn(program: ts.Program, file: string): string {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  if (module === undefined) throw new Error(`${file} exports nothing; build the packages first`);
  const lines = checker.getExportsOfModule(module).map((each) => `  ${each.name} (${kindOf(checker, each)})\n`);
  return lines.sort().join('');
}

function kindOf(checker: ts.TypeChecker, found: ts.Symbol): string {
  const { flags } = found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found;
  if (flags & ts.SymbolFlags.Class) return 'class';
  if (flags & ts.SymbolFlags.Function) return 'function';
  if (flags & ts.SymbolFlags.Variable) return 'constant';
  return 'type';
}

/** Writes the lists of all packages. */
export async function writeNames(workspace: Workspace): Promise<void> {
  const lists = listNames(workspace.packages);
  for (const each of workspace.packages) await writeFile(namesFile(workspace, each), lists.get(each.name) ?? '');
}

/** Reads the reviewed list of a package; it is empty if there is none. */
export async function reviewedNames(workspace: Workspace, of: PublicPackage): Promise<string> {
  return await readFile(namesFile(workspace, of), 'utf8').catch(() => '');
}
