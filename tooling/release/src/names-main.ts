/** `pnpm run names`: writes the lists of public names, to be reviewed with the change that makes them differ. */

import { writeNames } from './public-names.js';
import { readWorkspace, workspaceRoot } from './workspace.js';

async function main(): Promise<void> {
  await writeNames(await readWorkspace(workspaceRoot()));
}

void main();
