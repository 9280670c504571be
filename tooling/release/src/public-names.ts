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
export function namesFile(workspace: Workspace, { directory }: PublicPackage): string {
  return join(workspace.root, FOLDER, `${directory.replace(/^packages\//, '')}.txt`);
}

/** Returns the list of a built package: a line for each entry point, followed by one for each of its names. */
export function listNames({ name, folder, manifest }: PublicPackage): string {
  const entries = Object.entries(objectAt(manifest, 'exports') ?? {}).flatMap(([path, target]) => {
    const types = isJsonObject(target) ? stringAt(target, 'types') : undefined;
    return types === undefined ? [] : [{ entry: join(name, path), file: join(folder, types) }];
  });
  const program = ts.createProgram(
    entries.map(({ file }) => file),
    OPTIONS,
  );
  return entries.map(({ entry, file }) => `${entry}\n${namesIn(program, file)}`).join('\n');
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
  for (const each of workspace.packages) await writeFile(namesFile(workspace, each), listNames(each));
}

/** Reads the reviewed list of a package; it is empty if there is none. */
export async function reviewedNames(workspace: Workspace, of: PublicPackage): Promise<string> {
  return await readFile(namesFile(workspace, of), 'utf8').catch(() => '');
}
