/** Implements `pnpm pack:all`: packs the packages of this checkout for installations without a registry. */

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommandLine, UsageError } from '@nodepool/harness';
import { packAll } from './pack-all.js';
import { Progress } from './progress.js';
import { readWorkspace, sitePackages, withNeeds, workspaceRoot } from './workspace.js';

const HELP = `Usage: pnpm pack:all [--site] DIR [PACKAGE...]

Builds this checkout, and packs its packages into DIR as a release publishes them. "npm install DIR/*.tgz" in an empty
folder then installs them; npm takes only the packages of others from its registry.

PACKAGE is a name, with or without its scope. Packages that it needs are packed, too. Default: all packages.

  --site   pack the programs and the drivers with the libraries they need, without the tools of driver authors
  --help   this text

Exit status: 0 for success, 1 for a failure, 2 for wrong usage.
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { site: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const [folder, ...names] = positionals;
  if (folder === undefined) throw new UsageError('no folder is named');
  if (values.site && names.length > 0) throw new UsageError('--site excludes names of packages');
  const workspace = await readWorkspace(workspaceRoot());
  const all = workspace.packages.map(({ name }) => name);
  const chosen = values.site ? sitePackages(workspace) : names.length > 0 ? names : all;
  // Scripts of pnpm run in the root of the workspace; INIT_CWD is the folder in which the command was typed.
  const into = resolve(process.env['INIT_CWD'] ?? '.', folder);
  const progress = new Progress((text) => process.stdout.write(text));
  const packages = withNeeds(workspace, ...chosen);
  progress.say(`packing ${packages.length} packages`);
  const tarballs = await packAll(workspace.root, packages, into);
  process.stdout.write(`packed ${tarballs.length} packages into ${into}\n`);
}

runCommandLine(HELP, main);
