'use strict';
// Prints the first failed test as soon as it fails, so that `pnpm mutate` can end the run: --bail only skips the other
// test files, and the remaining tests of a file with a defect may hang.

/** @type {boolean} */
let hasFailed = false;

module.exports = class FirstFailureReporter {
  onTestCaseResult(_test, result) {
    if (result.status !== 'failed' || hasFailed) return;
    hasFailed = true;
    process.stdout.write(`${result.failureMessages.join('\n')}\nFirst failed test: ${result.fullName}\n`);
  }
};
