'use strict';
// Writes test-results.json next to the package's package.json: the counts that the summary of all suites adds up, and
// the failed tests, which it names.

const { writeFileSync } = require('node:fs');
const { join, relative } = require('node:path');
const { stripVTControlCharacters } = require('node:util');

/** Lines of a failure's message that the summary repeats. */
const MESSAGE_LINES = 6;

/** The first lines of a message, without colours and empty lines. */
function firstLines(message) {
  const lines = stripVTControlCharacters(message).split('\n');
  return lines.filter((line) => line.trim() !== '').slice(0, MESSAGE_LINES);
}

/** The failed tests of a file, or the file itself when it could not run. */
function failuresOf(result, rootDir) {
  const file = relative(rootDir, result.testFilePath);
  if (result.testExecError) return [{ test: file, message: firstLines(result.failureMessage ?? '') }];
  return result.testResults
    .filter(({ status }) => status === 'failed')
    .map((test) => ({ test: `${file}: ${test.fullName}`, message: firstLines(test.failureMessages.join('\n')) }));
}

module.exports = class ResultsReporter {
  constructor(globalConfig) {
    this.rootDir = globalConfig.rootDir;
  }

  onRunComplete(_contexts, results) {
    const suitesThatDidNotRun = results.numRuntimeErrorTestSuites;
    const summary = {
      passed: results.numPassedTests,
      failed: results.numFailedTests + suitesThatDidNotRun,
      skipped: results.numPendingTests + results.numTodoTests,
      failures: results.testResults.flatMap((result) => failuresOf(result, this.rootDir)),
    };
    writeFileSync(join(this.rootDir, 'test-results.json'), `${JSON.stringify(summary)}\n`);
  }
};
