/** The programs of a checkout find all drivers of the workspace, as the documentation says. */

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { listInstalledDrivers } from '@nodepool/config';

const PACKAGES = join(__dirname, '..', '..', '..', 'packages');

/** The packages of the workspace that say that they are drivers. */
function driversOfWorkspace(): string[] {
  const manifests = readdirSync(PACKAGES).map(
    (folder) => JSON.parse(readFileSync(join(PACKAGES, folder, 'package.json'), 'utf8')) as Record<string, unknown>,
  );
  return manifests.flatMap(({ name, nodepool }) => (nodepool === undefined ? [] : [String(name)])).sort();
}

it.each(['launcher', 'builder', 'cli'])('%s finds every driver of the workspace', async (program) => {
  const folders = [join(PACKAGES, program, 'dist')];
  const found = await listInstalledDrivers({ aliases: new Map(), configFolder: '/', folders });
  const names = found.filter(({ error }) => error === undefined).map((driver) => driver.package);
  expect(names.sort()).toEqual(driversOfWorkspace());
  expect(names.length).toBeGreaterThan(3);
});
