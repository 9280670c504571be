/**
 * Implements `pnpm release:repository URL`: writes the repository's URL into every public package. With `--check`,
 * fails if a package has none.
 */

import { repositoryUrl, withoutRepository, writeRepository } from './repository.js';
import { workspaceRoot } from './workspace.js';

async function main(): Promise<void> {
  if (process.argv[2] === '--check') {
    const missing = await withoutRepository(workspaceRoot());
    if (missing.length === 0) return;
    process.stderr.write(
      `no "repository" in ${missing.join(', ')}: run pnpm release:repository URL before publishing\n`,
    );
    process.exitCode = 1;
    return;
  }
  const url = process.argv[2] ?? repositoryUrl(process.env);
  if (url === undefined || !/^git\+https:\/\/\S+$/.test(url)) {
    process.stderr.write('Usage: pnpm release:repository git+https://HOST/OWNER/NAME.git\n');
    process.exitCode = 2;
    return;
  }
  const changed = await writeRepository(workspaceRoot(), url);
  process.stdout.write(`The repository is ${url}; changed: ${changed.length === 0 ? 'none' : changed.join(', ')}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
