/** Where the built programs of this workspace are. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Programs by name, as in the `bin` of the package that they come from. */
const PACKAGES = {
  'nodepool-launcher': '@nodepool/launcher',
  'nodepool-builder': '@nodepool/builder',
  nodepool: '@nodepool/cli',
  'nodepool-example-cloud': '@nodepool/driver-example',
} as const;

export type ProgramName = keyof typeof PACKAGES;

/** Path of a built program. Throws when it was not built. */
export function programPath(name: ProgramName): string {
  const manifestFile = require.resolve(`${PACKAGES[name]}/package.json`);
  const manifest = JSON.parse(readFileSync(manifestFile, 'utf8')) as { bin?: Record<string, string> };
  const relative = manifest.bin?.[name];
  if (relative === undefined) throw new Error(`${manifestFile} names no program ${name}`);
  const path = join(dirname(manifestFile), relative);
  if (!existsSync(path)) throw new Error(`${path} does not exist: build the workspace first (pnpm build)`);
  return path;
}

/** Path of the program on the requestor library, built. */
export function libraryRequestorPath(): string {
  return join(__dirname, '..', 'dist', 'requestor-program.js');
}

/** Path of the requestor that speaks as Zuul does; `NODEPOOL_REQUESTOR` names another one. */
export function requestorPath(): string {
  return process.env['NODEPOOL_REQUESTOR'] ?? join(__dirname, '..', '..', 'requestor', 'requestor.py');
}
