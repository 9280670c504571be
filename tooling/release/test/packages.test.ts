/** The packages of this workspace, packed as for publication. `pnpm release:check` also runs the slower checks. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { checkPacked } from '../src/check-package.js';
import { manifestRules } from '../src/checks/manifest.js';
import { build, copyWorkspace } from '../src/copy.js';
import { pack } from '../src/pack.js';
import { writeRepository } from '../src/repository.js';
import { packageNamed, readWorkspace, withNeeds, workspaceRoot, type Workspace } from '../src/workspace.js';

const REPOSITORY = 'git+https://example.org/nodepool/nodepool.git';

describe('the published packages', () => {
  let folder: string;
  let workspace: Workspace;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nodepool-packages-'));
    workspace = await copyWorkspace(workspaceRoot(), join(folder, 'checkout'));
    await writeRepository(workspace.root, REPOSITORY);
    workspace = await readWorkspace(workspace.root);
    await build(workspace.root, workspace.packages);
  });

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('pass all checks of their files and manifests', async () => {
    const found: string[] = [];
    for (const packed of await pack(workspace.root, workspace.packages, join(folder, 'packed'))) {
      const findings = await checkPacked(packed, manifestRules(workspace, REPOSITORY));
      found.push(...findings.map(({ check, message }) => `${packed.source.name}: ${check}: ${message}`));
    }

    expect(found).toEqual([]);
    expect(workspace.packages.length).toBeGreaterThan(5);
  });

  it('follow the packages that they need', () => {
    const names = withNeeds(workspace, 'launcher').map(({ name }) => name);

    expect(names.at(-1)).toBe('@nodepool/launcher');
    const needs = ['pyyaml', 'zookeeper', 'core', 'store', 'config', 'daemon', 'status'].map(
      (name) => `@nodepool/${name}`,
    );
    expect([...names].sort()).toEqual([...needs, '@nodepool/launcher'].sort());
    expect(names.indexOf('@nodepool/core')).toBeLessThan(names.indexOf('@nodepool/config'));
    expect(names.indexOf('@nodepool/config')).toBeLessThan(names.indexOf('@nodepool/daemon'));
  });

  it('are listed in the error about an unknown package', () => {
    expect(() => packageNamed(workspace, 'lancher')).toThrow(
      /no public package lancher; there are: .*@nodepool\/launcher/,
    );
  });
});
