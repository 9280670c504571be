/** Implements `pnpm run docs`: builds the website of the documentation. Fails if a link is dead. */

import { join } from 'node:path';
import { REPOSITORY } from './repository.js';
import { buildSite } from './website/build.js';

const FOLDER = join(__dirname, '..', 'site');

async function main(): Promise<void> {
  const { pages, files, problems } = await buildSite({ repository: REPOSITORY, folder: FOLDER });
  if (problems.length > 0) {
    process.stderr.write(`${problems.join('\n')}\nThe site was not built: ${problems.length} problems, see above.\n`);
    process.exitCode = 1;
    return;
  }
  process.stdout.write(`${pages} pages, ${files} files, no dead links: ${join(FOLDER, 'index.html')}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`The site was not built: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
