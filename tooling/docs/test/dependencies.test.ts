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

/** Returns the entries below a heading: what is before the brackets, the texts in brackets, and the text after them. */
function entriesBelow(heading: string): { names: string; brackets: readonly string[]; text: string }[] {
  const section = page.split(/^## /m).find((each) => each.startsWith(heading)) ?? '';
  return [...section.matchAll(/^- ([^(]*) \(([^)]*)\)(.*(?:\n {2}.*)*)/gm)].map(
    ([, names = '', inner = '', text = '']) => ({
      names,
      brackets: inner.replaceAll(/\s+/g, ' ').split('; '),
      text,
    }),
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
      entriesBelow('Published packages').flatMap(({ names, brackets: [folders = ''] }) =>
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
    const documented = entriesBelow('Development tools').flatMap(({ names }) => inCode(names));
    const own = documented.filter((name) => !published.has(name));
    expect(own.toSorted()).toEqual([...new Set(needed)].filter((name) => !bundles.has(name)).toSorted());
  });

  it.each(entriesBelow('Own code').map(({ names, brackets: [paths = ''], text }) => [names, paths, text]))(
    'lists %s, which exists',
    (_, listed, text) => {
      const paths = inCode(listed);
      expect(paths.filter((path) => !existsSync(join(REPOSITORY, path)))).toEqual([]);
      expect(paths).not.toEqual([]);
      expect(text).toMatch(/^\s+instead\s+of\s[^:]+:\s+\S/);
    },
  );

  it('has a licence in each entry', () => {
    const licences = [
      ...entriesBelow('Published packages').map(({ brackets }) => brackets[1]),
      ...entriesBelow('Development tools').map(({ brackets }) => brackets[0]),
    ];
    expect(licences.filter((licence) => !/^[A-Z][\w.-]+(, [A-Z][\w.-]+)*$/.test(licence ?? ''))).toEqual([]);
  });
});
