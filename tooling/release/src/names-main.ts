/**
 * Implements `pnpm run names`: writes the lists of public names, which are reviewed with the change that affects them.
 */

import { writeNames } from './public-names.js';
import { readWorkspace, workspaceRoot } from './workspace.js';

async function main(): Promise<void> {
  await writeNames(await readWorkspace(workspaceRoot()));
}

void main();
