/** The page about dependencies lists the same packages as the package.json files, and existing parts of the code. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { REPOSITORY } from '../src/repository.js';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly imports?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const page = readFileSync(join(REPOSITORY, 'docs', 'dependencies.md'), 'utf8');

/** Returns the rows of the first table below a heading, by the names in code in their first cell. */
function tableBelow(heading: string): (readonly string[])[] {
  const section = page.split(/^## /m).find((each) => each.startsWith(heading)) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function inCode(cell: string | undefined): string[] {
  return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

function manifestsIn(folder: string): Map<string, Manifest> {
  const folders = readdirSync(join(REPOSITORY, folder)).map((name) => join(REPOSITORY, folder, name));
  return new Map(
    [REPOSITORY, ...folders]
      .filter((each) => existsSync(join(each, 'package.json')))
      .map((each) => [basename(each), JSON.parse(readFileSync(join(each, 'package.json'), 'utf8')) as Manifest]),
  );
}

function foreign(...needs: (Readonly<Record<string, string>> | undefined)[]): string[] {
  return needs.flatMap((each) => Object.keys(each ?? {})).filter((name) => !name.startsWith('@nodepool/'));
}

/** Libraries that the build copies into the package, which imports them as `#name`; not sources of its own. */
function bundled({ imports = {} }: Manifest): string[] {
  const libraries = Object.entries(imports).filter(
    ([, conditions]) => !/^\./.test(conditions['@nodepool/source'] ?? ''),
  );
  return libraries.map(([name]) => name.replace(/^#/, ''));
}

describe('the page about dependencies', () => {
  const packages = manifestsIn('packages');
  const tooling = manifestsIn('tooling');

  it('lists the dependencies of published packages, and these packages', () => {
    const users: Record<string, string[]> = {};
    for (const [folder, manifest] of packages) {
      const needs = [...foreign(manifest.dependencies, manifest.peerDependencies), ...bundled(manifest)];
      for (const name of new Set(needs)) users[name] = [...(users[name] ?? []), folder].sort();
    }
    const documented = Object.fromEntries(
      tableBelow('Published packages').flatMap(([names, folders = '']) =>
        inCode(names).map((name) => [name, folders.split(', ').toSorted()]),
      ),
    );
    expect(documented).toEqual(users);
  });

  it('lists the development dependencies', () => {
    const published = new Set([...packages.values()].flatMap(({ dependencies }) => foreign(dependencies)));
    const needed = [
      ...[...packages.values()].flatMap(({ devDependencies }) => foreign(devDependencies)),
      ...[...tooling.values()].flatMap(({ dependencies, devDependencies }) => foreign(dependencies, devDependencies)),
    ].filter((name) => !published.has(name));
    const bundles = new Set([...packages.values()].flatMap(bundled));
    const documented = tableBelow('Development tools').flatMap(([names]) => inCode(names));
    const own = documented.filter((name) => !published.has(name));
    expect(own.toSorted()).toEqual([...new Set(needed)].filter((name) => !bundles.has(name)).toSorted());
  });

  it.each(tableBelow('Own code').map(([part = '', , reason = '']) => [part, reason]))(
    'lists %s, which exists',
    (part, reason) => {
      const paths = inCode(part);
      expect(paths.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([]);
      expect(paths).not.toEqual([]);
      expect(reason).not.toBe('');
    },
  );

  it('has a licence in each row', () => {
    const licences = [
      ...tableBelow('Published packages').map((cells) => cells[3]),
      ...tableBelow('Development tools').map((cells) => cells[2]),
    ];
    expect(licences.filter((licence) => !/^[A-Z][\w.-]+([,;] [A-Z][\w.-]+)*$/.test(licence ?? ''))).toEqual([]);
  });
});
