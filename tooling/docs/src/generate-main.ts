/** Writes the generated parts of the documentation. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GENERATED, insertGenerated } from './generated.js';
import { REPOSITORY } from './repository.js';

async function main(): Promise<void> {
  for (const part of GENERATED) {
    const file = join(REPOSITORY, 'docs', part.page);
    const page = await readFile(file, 'utf8');
    const updated = insertGenerated(page, part, await part.make());
    if (updated !== page) await writeFile(file, updated);
    process.stdout.write(`docs/${part.page}: ${part.name} ${updated === page ? 'is up to date' : 'written'}\n`);
  }
}

main().catch((error: unknown) => {
  process.stderr.write(
    `The documentation was not generated: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exitCode = 1;
});
