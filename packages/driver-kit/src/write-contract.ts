/** Writes the contract page to the given file. */

import { writeFileSync } from 'node:fs';
import { contractPage } from './contract-page.js';

const [file] = process.argv.slice(2);
if (file === undefined) {
  process.stderr.write('usage: write-contract FILE\n');
  process.exitCode = 2;
} else {
  writeFileSync(file, contractPage());
}
