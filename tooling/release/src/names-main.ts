/** Implements `pnpm run names`: writes the lists of public names and of the members of the driver API. */

import { runCommandLine } from '@nodepool/harness';
import { writeDriverApi } from './driver-api.js';
import { writeNames } from './public-names.js';
import { readWorkspace, workspaceRoot } from './workspace.js';

const HELP = `Usage: pnpm run names

Writes the lists of the names that packages export, and of the members of the driver API. Refuses changes of the driver
API that break the drivers of its version.

Exit status: 0 for success, 1 for a failure.
`;

async function main(): Promise<void> {
  const workspace = await readWorkspace(workspaceRoot());
  await writeNames(workspace);
  await writeDriverApi(workspace);
}

runCommandLine(HELP, main);
