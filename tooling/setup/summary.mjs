// Adds up the test-results.json of all packages, names the failed tests, and prints the sum as the last line.
//
// Arguments: names of checks that failed. Each counts as one failure, except that `test` (the linter and the tests of all
// packages) only does when no package's own result says so. Exit status 0 only if nothing failed.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const failedChecks = process.argv.slice(2);

/** Lines of the output that the summary repeats of tests that crashed. */
const OUTPUT_LINES = 8;

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

/** The last lines of the output of a package's tests. */
function lastLines(folder) {
  try {
    const output = stripVTControlCharacters(readFileSync(join(root, folder, '.turbo', 'turbo-test.log'), 'utf8'));
    return output
      .split('\n')
      .filter((line) => line.trim() !== '')
      .slice(-OUTPUT_LINES);
  } catch {
    return ['there is no output'];
  }
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
      failures: [{ test: 'reported nothing: the tests did not run, or crashed', message: lastLines(folder) }],
      note: '  (reported nothing)',
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
