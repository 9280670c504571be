/** Findings about a package.json that must not be published. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { checkManifest, type ManifestRules } from '../src/checks/manifest.js';

const URL = 'git+https://example.org/nodepool/nodepool.git';
const rules: ManifestRules = { license: 'Apache-2.0', node: '>=22.12', repository: URL, coreVersion: '0.3.1' };

const library: JsonObject = {
  name: '@nodepool/zookeeper',
  version: '0.3.1',
  description: 'A client',
  license: 'Apache-2.0',
  engines: { node: '>=22.12' },
  exports: { '.': './dist/index.js', './package.json': './package.json' },
  files: ['dist'],
  repository: { type: 'git', url: URL, directory: 'packages/zookeeper' },
  scripts: { build: 'tsc -b' },
};

const driver: JsonObject = {
  ...library,
  nodepool: { driver: 'x', api: 1 },
  peerDependencies: { '@nodepool/core': '^0' },
};

function found(manifest: JsonObject, changed: Partial<ManifestRules> = {}): string {
  const findings = checkManifest({ manifest, directory: 'packages/zookeeper' }, { ...rules, ...changed });
  return findings.map(({ message }) => message).join('\n');
}

describe('the check of package.json', () => {
  it('accepts a correct package.json', () => {
    expect(found(library)).toBe('');
    expect(found(driver)).toBe('');
  });

  it.each([
    [{ license: 'MIT' }, '"license" must be "Apache-2.0"'],
    [{ description: '' }, '"description" is missing'],
    [{ engines: { node: '>=18' } }, '"engines" must be {"node": ">=22.12"}'],
    [{ exports: './dist/index.js' }, '"exports" must name the public entries'],
    [{ exports: { '.': './dist/index.js' } }, '"exports" must have "./package.json"'],
    [{ files: null }, '"files" must name'],
    [{ scripts: { postinstall: 'node x.js' } }, 'the script "postinstall" would run'],
    [{ dependencies: { yaml: 'workspace:^' } }, 'dependencies: "yaml": "workspace:^" is not a range'],
    [{ dependencies: { yaml: 2 } }, 'dependencies: "yaml": 2 is not a range'],
    [{ repository: URL }, '"repository" must name'],
    [{ repository: { type: 'git', url: URL, directory: 'packages/core' } }, 'the directory packages/zookeeper'],
  ])('reports %j', (change, message) => {
    expect(found({ ...library, ...change })).toContain(message);
  });

  it('requires no repository if its address is unknown', () => {
    expect(found({ ...library, repository: null }, { repository: undefined })).toBe('');
  });
});

describe('the check of a driver', () => {
  it.each([
    [{ nodepool: { driver: 'x' } }, '"nodepool" must be'],
    [{ nodepool: { driver: 'x', api: '1' } }, '"nodepool" must be'],
    [{ nodepool: { drivers: {}, api: 1 } }, '"nodepool" must be'],
    [{ dependencies: { '@nodepool/core': '^0.3.0' } }, 'must be a peer dependency of a driver'],
    [{ peerDependencies: {} }, 'must be in "peerDependencies"'],
  ])('reports %j', (change, message) => {
    expect(found({ ...driver, ...change })).toContain(message);
  });
});

it('the check of a driver accepts a package with several drivers', () => {
  expect(found({ ...driver, nodepool: { drivers: { x: 'x', y: 'y' }, api: 1 } })).toBe('');
});

describe('the check of the range of core', () => {
  const withRange = (range: string, coreVersion: string): string =>
    found({ ...driver, peerDependencies: { '@nodepool/core': range } }, { coreVersion });

  it.each([
    ['^0', '0.0.0'],
    ['^0', '0.3.1'],
    ['>=0.2.0 <1.0.0-0', '0.3.1'],
    ['^1.0.0', '1.4.2'],
    ['^1.4.0', '1.4.2'],
    ['^0 || ^1.0.0', '1.4.2'],
  ])('accepts %s with core %s', (range, coreVersion) => {
    expect(withRange(range, coreVersion)).toBe('');
  });

  it.each([
    ['^0.3.0', '0.3.1', 'refuses later versions of 0.x'],
    ['0.3.1', '0.3.1', 'refuses later versions of 0.x'],
    ['~1.4.0', '1.4.2', 'refuses later versions of 1.x'],
    ['^1.5.0', '1.4.2', 'refuses the current version 1.4.2'],
    ['>=0.1.0', '0.3.1', 'accepts 1.0.0'],
    ['*', '0.3.1', 'accepts 1.0.0'],
    ['^1.0.0 || ^2.0.0', '1.4.2', 'accepts 2.0.0'],
  ])('reports %s with core %s: %s', (range, coreVersion, message) => {
    expect(withRange(range, coreVersion)).toContain(message);
  });
});
