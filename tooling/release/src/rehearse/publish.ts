/** Publishes what has a new version, as a release does. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../command.js';
import { asNobody, build } from '../copy.js';
import { addChangeset, applyChangesets, type Bump } from '../versioning.js';
import { readWorkspace } from '../workspace.js';
import type { Registry } from './registry.js';

/** Versions, build, publication. Resolves with the versions that were published, by name. */
export async function release(root: string, registry: Registry): Promise<ReadonlyMap<string, string>> {
  await applyChangesets(root);
  const { packages } = await readWorkspace(root);
  await build(root, packages);
  const output = await run(join(root, 'node_modules', '.bin', 'changeset'), ['publish'], {
    cwd: root,
    env: asNobody({ ...registry.env, CI: 'true' }),
  });
  return publishedIn(output);
}

/** Releases a change of one package, whatever else there is. */
export async function releaseOne(
  root: string,
  name: string,
  bump: Bump,
  registry: Registry,
): Promise<ReadonlyMap<string, string>> {
  await addChangeset(root, { [name]: bump }, 'A change to rehearse a release with.');
  return await release(root, registry);
}

/** Forgets what npm and pnpm have kept of the lists of versions: they are older than the last publication. */
export async function forgetLists(registry: Registry): Promise<void> {
  await rm(join(registry.env['npm_config_cache'] ?? '', '_cacache'), { recursive: true, force: true });
}

/** The lines `New tag: <name>@<version>` at the end. */
function publishedIn(output: string): Map<string, string> {
  const lines = output.matchAll(/New tag:\s+(@?[^@\s]+)@(\S+)/g);
  return new Map([...lines].map(([, name = '', version = '']) => [name, version]));
}
