/** `pnpm pack:all` packs what a site needs, and nothing else is installed with it. */

import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { packAll } from '../src/pack-all.js';
import { tarballName } from '../src/pack.js';
import { packageNamed, readWorkspace, sitePackages, withNeeds, workspaceRoot } from '../src/workspace.js';

describe('packing for an installation without a registry', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodepool-pack-'));
  });

  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  it('writes one file for each package, also over those of the last time', async () => {
    const workspace = await readWorkspace(workspaceRoot());
    const packages = ['core', 'pyyaml'].map((name) => packageNamed(workspace, name));
    const into = join(folder, 'new');

    const tarballs = await packAll(workspace.root, packages, into);
    await packAll(workspace.root, packages, into);

    expect((await readdir(into)).sort()).toEqual(packages.map(tarballName));
    expect(tarballs).toEqual(packages.map((each) => join(into, tarballName(each))));
  });

  it('refuses a folder with other packages, which would be installed, too', async () => {
    const workspace = await readWorkspace(workspaceRoot());
    const packages = [packageNamed(workspace, 'pyyaml')];
    await writeFile(join(folder, 'nodepool-core-0.0.1.tgz'), '');

    await expect(packAll(workspace.root, packages, folder)).rejects.toThrow(
      /has 1 other packages \(nodepool-core-0\.0\.1\.tgz/,
    );
    expect(await readdir(folder)).toEqual(['nodepool-core-0.0.1.tgz']);
  });
});

describe('the packages of a site', () => {
  it('are all programs and drivers, without the tools of driver authors', async () => {
    const workspace = await readWorkspace(workspaceRoot());

    const names = sitePackages(workspace);

    const programs = ['launcher', 'builder', 'cli', 'gateway', 'bridge-github'].map((name) => `@nodepool/${name}`);
    expect(names).toEqual(expect.arrayContaining(programs));
    const drivers = workspace.packages.map(({ name }) => name).filter((name) => /driver-(?!kit)/.test(name));
    expect(names).toEqual(expect.arrayContaining(drivers.filter((name) => !name.includes('create-driver'))));
    const packed = withNeeds(workspace, ...names).map(({ name }) => name);
    expect(packed).toContain('@nodepool/zookeeper');
    expect(packed).not.toContain('@nodepool/driver-kit');
    expect(packed).not.toContain('@nodepool/create-driver');
  });
});
