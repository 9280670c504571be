// Adds up the test-results.json of all packages, names the failed tests, and prints the sum as the last line.
//
// Arguments: names of checks that failed. Each counts as one failure, except that `test` (the linter and the tests of all
// packages) only does when no package's own result says so. Exit status 0 only if nothing failed.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const failedChecks = process.argv.slice(2);

/** Folders of the packages that have tests. */
function testedPackages() {
  return ['packages', 'tooling']
    .flatMap((group) => readdirSync(join(root, group)).map((name) => join(group, name)))
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .filter(
      (folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')).scripts?.test !== undefined,
    )
    .sort();
}

/** Counts of one package; tests that crashed before they could report count as one failure. */
function resultsOf(folder) {
  try {
    return { ...JSON.parse(readFileSync(join(root, folder, 'test-results.json'), 'utf8')), note: '' };
  } catch {
    return {
      passed: 0,
      failed: 1,
      skipped: 0,
      failures: [],
      note: '  (reported nothing: the tests did not run, or crashed)',
    };
  }
}

const total = { passed: 0, failed: 0, skipped: 0 };
const rows = testedPackages().map((folder) => ({ folder, ...resultsOf(folder) }));
const width = Math.max(0, ...rows.map((row) => row.folder.length));
console.log();
for (const { folder, passed, failed, skipped, note } of rows) {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
  console.log(`  ${folder.padEnd(width)}  ${passed} passed, ${failed} failed, ${skipped} skipped${note}`);
}
for (const { folder, failures = [] } of rows) {
  for (const { test, message } of failures) console.log([`  FAILED: ${folder} ${test}`, ...message].join('\n      '));
}
for (const check of failedChecks) {
  console.log(`  FAILED: ${check}`);
  if (check !== 'test') total.failed += 1;
}
if (failedChecks.includes('test') && total.failed === 0) total.failed = 1;

console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 ? 0 : 1;
