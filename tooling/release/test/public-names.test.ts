/** Names that packages export, and imports within packages. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import { listNames, reviewedNames } from '../src/public-names.js';
import { readWorkspace, workspaceRoot, type Workspace } from '../src/workspace.js';

let workspace: Workspace;
beforeAll(async () => {
  workspace = await readWorkspace(workspaceRoot());
});

it('every package exports exactly the reviewed names, which `pnpm run names` writes', async () => {
  expect(workspace.packages.length).toBeGreaterThan(5);
  const lists = listNames(workspace.packages);
  for (const each of workspace.packages) expect(lists.get(each.name)).toBe(await reviewedNames(workspace, each));
});

/** Returns the files of a folder that each file imports, type-only imports included. */
function importsIn(folder: string): ReadonlyMap<string, readonly string[]> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(folder, file), 'utf8');
      const targets = [...text.matchAll(/from '(\.[^']+)\.js'/g)].map(
        ([, path = '']) => `${join(dirname(file), path)}.ts`,
      );
      return [file, targets.filter((target) => files.includes(target))];
    }),
  );
}

/** Returns the files on the first cycle that is found. */
function cycleIn(imports: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const target of imports.get(file) ?? []) {
      const cycle = visit(target, [...path, file]);
      if (cycle !== undefined) return cycle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of imports.keys()) {
    const cycle = visit(file, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

it('the check finds a cycle of imports', () => {
  const imports = new Map([
    ['a', ['b', 'c']],
    ['b', []],
    ['c', ['d']],
    ['d', ['c']],
  ]);
  expect(cycleIn(imports)).toEqual(['c', 'd', 'c']);
});

it('no package has a cycle of imports, including type imports and the imports of tests', () => {
  const folders = ['packages', 'tooling'].flatMap((group) =>
    readdirSync(join(workspace.root, group)).flatMap((name) => [
      join(workspace.root, group, name, 'src'),
      join(workspace.root, group, name, 'test'),
    ]),
  );
  const found = folders.filter(existsSync).flatMap((folder) => {
    const cycle = cycleIn(importsIn(folder));
    return cycle === undefined ? [] : [`${relative(workspace.root, folder)}: ${cycle.join(' -> ')}`];
  });
  expect(found).toEqual([]);
});
