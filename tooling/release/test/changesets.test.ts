/** Releases that changesets create, in a copy of this workspace. */

import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { objectAt } from '@nodepool/core';
import { gte, inc, major } from 'semver';
import { changedSince, copyWorkspace, currentCommit, resetTo } from '../src/copy.js';
import { addChangeset, applyChangesets } from '../src/versioning.js';
import { readWorkspace, workspaceRoot, type PublicPackage } from '../src/workspace.js';

const CORE = '@nodepool/core';
const DRIVER = '@nodepool/driver-example';

describe('a release', () => {
  let root: string;
  let start: string;
  let packages: readonly PublicPackage[];
  let firstRelease: ReadonlyMap<string, string>;

  const named = (name: string): PublicPackage => packages.find((each) => each.name === name)!;
  const drivers = (): PublicPackage[] => packages.filter(({ manifest }) => 'nodepool' in manifest);
  const peerRange = ({ manifest }: PublicPackage): unknown => objectAt(manifest, 'peerDependencies')?.[CORE];

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'nodepool-changesets-'));
    await copyWorkspace(workspaceRoot(), root);
    firstRelease = await applyChangesets(root);
    start = await currentCommit(root);
  });

  beforeEach(async () => {
    await resetTo(root, start);
    packages = (await readWorkspace(root)).packages;
  });

  afterAll(async () => {
    await rm(root, { recursive: true, force: true });
  });

  it('gives every package 1.0.0 if it is the first one, and the ranges that follow from it', async () => {
    for (const { name, version } of packages) expect([name, gte(version, '1.0.0')]).toEqual([name, true]);
    for (const driver of drivers()) expect(peerRange(driver)).toMatch(/^workspace:\^[1-9]/);
    for (const name of firstRelease.keys())
      expect(readFileSync(join(named(name).folder, 'CHANGELOG.md'), 'utf8')).toMatch(/^# @nodepool\//);
    const { peerDependencies } = JSON.parse(
      readFileSync(join(root, 'packages/create-driver/templates/common/_package.json'), 'utf8'),
    ) as { readonly peerDependencies: Readonly<Record<string, string>> };
    expect(peerDependencies[CORE]).toBe(`^${major(named(CORE).version)}`);
  });

  it('of a change in one driver contains only that driver', async () => {
    await addChangeset(root, { [DRIVER]: 'patch' }, 'Instances boot faster.');

    const released = await applyChangesets(root);

    expect([...released]).toEqual([[DRIVER, inc(named(DRIVER).version, 'patch')]]);
    expect(readFileSync(join(named(DRIVER).folder, 'CHANGELOG.md'), 'utf8')).toContain('Instances boot faster.');
  });

  it.each(['patch', 'minor'] as const)('of a %s version of core contains no driver', async (bump) => {
    await addChangeset(root, { [CORE]: bump }, 'Something new.');

    const released = await applyChangesets(root);

    expect(released.get(CORE)).toBe(inc(named(CORE).version, bump));
    for (const { name } of drivers()) expect(released.has(name)).toBe(false);
  });

  it('of a major version of core contains a major version of every driver with the new range, and all packages that need core', async () => {
    await addChangeset(root, { [CORE]: 'major' }, 'Another driver API.');

    const released = await applyChangesets(root);

    const version = inc(named(CORE).version, 'major');
    packages = (await readWorkspace(root)).packages;
    expect(released.get(CORE)).toBe(version);
    expect(drivers()).not.toEqual([]);
    for (const driver of drivers()) {
      expect(released.get(driver.name)).toMatch(/^\d+\.0\.0$/);
      expect(peerRange(driver)).toBe(`workspace:^${String(version)}`);
    }
    for (const { name, needs } of packages) if (needs.includes(CORE)) expect(released.has(name)).toBe(true);
    // Unpublished packages do not change.
    expect(await changedSince(root, start, 'tooling')).toEqual([]);
    expect(await changedSince(root, start, 'packages/core')).toEqual([
      'packages/core/CHANGELOG.md',
      'packages/core/package.json',
    ]);
  });
});
