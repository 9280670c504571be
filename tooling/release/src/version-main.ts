/** Implements `pnpm release:version`: versions, changelogs, ranges of new drivers, and the lock file. */

import { runCommandLine } from '@nodepool/harness';
import { parseArgs } from 'node:util';
import { run } from './command.js';
import { updateVersions } from './versioning.js';
import { workspaceRoot } from './workspace.js';

const HELP = `Usage: pnpm release:version

Turns the changesets into versions and changelogs of the packages, updates the ranges of new drivers, and the lock file.
Has no options but --help.

Exit status: 0 for success, 1 for a failure, 2 for wrong usage.
`;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h', default: false } } });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const root = workspaceRoot();
  await updateVersions(root);
  await run('pnpm', ['install', '--lockfile-only', '--no-frozen-lockfile'], { cwd: root });
}

runCommandLine(HELP, main);
