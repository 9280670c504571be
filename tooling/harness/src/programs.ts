/** Locations of the built programs in this workspace. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Packages by program name, as in `bin`. */
const PACKAGES = {
  'nodepool-launcher': '@nodepool/launcher',
  'nodepool-builder': '@nodepool/builder',
  'nodepool-gateway': '@nodepool/gateway',
  nodepool: '@nodepool/cli',
  'nodepool-gitlab': '@nodepool/cli',
  'nodepool-slurm': '@nodepool/cli',
  'nodepool-github': '@nodepool/bridge-github',
  'nodepool-example-cloud': '@nodepool/driver-example',
} as const;

export type ProgramName = keyof typeof PACKAGES;

/** Returns the path of a built program. Throws if it is not built. */
export function programPath(name: ProgramName): string {
  const manifestFile = require.resolve(`${PACKAGES[name]}/package.json`);
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as { bin?: Record<string, string> };
  const relative = manifest.bin?.[name];
  if (relative === undefined) throw new Error(`${manifestFile} names no program ${name}`);
  const path = join(dirname(manifestFile), relative);
  if (!existsSync(path)) throw new Error(`${path} does not exist: build the workspace first (pnpm build)`);
  return path;
}

/** Returns the path of the built program that uses the requestor library. */
export function libraryRequestorPath(): string {
  return join(__dirname, '..', 'dist', 'requestor-program.js');
}

/** Returns the path of the requestor that uses Zuul's protocol; `NODEPOOL_REQUESTOR` overrides it. */
export function requestorPath(): string {
  return process.env['NODEPOOL_REQUESTOR'] ?? join(__dirname, '..', '..', 'requestor', 'requestor.py');
}
