/** Publishes new versions like a release. */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../command.js';
import { withCommitAuthor, build } from '../copy.js';
import { addChangeset, applyChangesets, type Bump } from '../versioning.js';
import { readWorkspace } from '../workspace.js';
import type { Registry } from './registry.js';

/** Updates versions, builds and publishes. Resolves with the published versions by name. */
export async function release(root: string, registry: Registry): Promise<ReadonlyMap<string, string>> {
  await applyChangesets(root);
  const { packages } = await readWorkspace(root);
  await build(root, packages);
  const output = await run(join(root, 'node_modules', '.bin', 'changeset'), ['publish'], {
    cwd: root,
    env: withCommitAuthor({ ...registry.env, CI: 'true' }),
  });
  return publishedIn(output);
}

/** Releases a change of one package, regardless of other changes. */
export async function releaseOne(
  root: string,
  name: string,
  bump: Bump,
  registry: Registry,
): Promise<ReadonlyMap<string, string>> {
  await addChangeset(root, { [name]: bump }, 'A change to rehearse a release with.');
  return await release(root, registry);
}

/** Clears the version lists cached by npm and pnpm, which lack the last publication. */
export async function clearListCaches(registry: Registry): Promise<void> {
  await rm(join(registry.env['npm_config_cache'] ?? '', '_cacache'), { recursive: true, force: true });
}

/** Parses the lines `New tag: <name>@<version>` at the end. */
function publishedIn(output: string): Map<string, string> {
  const lines = output.matchAll(/New tag:\s+(@?[^@\s]+)@(\S+)/g);
  return new Map([...lines].map(([, name = '', version = '']) => [name, version]));
}
