/** The programs of a checkout find all drivers of the workspace, as the documentation says. */

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { listInstalledDrivers } from '@nodepool/config';

const PACKAGES = join(__dirname, '..', '..', '..', 'packages');

interface Manifest {
  readonly nodepool?: { readonly driver?: string; readonly drivers?: Readonly<Record<string, string>> };
}

/** Returns the names of the drivers that packages of the workspace declare. */
function driversOfWorkspace(): string[] {
  const manifests = readdirSync(PACKAGES).map(
    (folder) => JSON.parse(readFileSync(join(PACKAGES, folder, 'package.json'), 'utf8')) as Manifest,
  );
  return manifests.flatMap(({ nodepool }) => [nodepool?.driver ?? Object.keys(nodepool?.drivers ?? {})].flat()).sort();
}

it.each(['launcher', 'builder', 'cli'])('%s finds every driver of the workspace', async (program) => {
  const folders = [join(PACKAGES, program, 'dist')];
  const found = await listInstalledDrivers({ aliases: new Map(), configFolder: '/', folders });
  const names = found.filter(({ error }) => error === undefined).map(({ name }) => name);
  expect(names.sort()).toEqual(driversOfWorkspace());
  expect(names.length).toBeGreaterThan(3);
});
