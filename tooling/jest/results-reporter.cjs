'use strict';
// Writes test-results.json next to the package's package.json: the counts that the summary of all suites adds up.

const { writeFileSync } = require('node:fs');
const { join } = require('node:path');

module.exports = class ResultsReporter {
  constructor(globalConfig) {
    this.file = join(globalConfig.rootDir, 'test-results.json');
  }

  onRunComplete(_contexts, results) {
    const suitesThatDidNotRun = results.numRuntimeErrorTestSuites;
    const counts = {
      passed: results.numPassedTests,
      failed: results.numFailedTests + suitesThatDidNotRun,
      skipped: results.numPendingTests + results.numTodoTests,
    };
    writeFileSync(this.file, `${JSON.stringify(counts)}\n`);
  }
};
