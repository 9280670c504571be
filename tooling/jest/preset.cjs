'use strict';
// The one jest configuration of the workspace: TypeScript through swc, workspace packages resolved to their sources,
// so that tests need no build and stack traces name the lines that were written.

/** @param {string} rootDir folder of the package under test */
module.exports = function preset(rootDir) {
  return {
    rootDir,
    testEnvironment: 'node',
    testMatch: ['<rootDir>/test/**/*.test.ts'],
    transform: {
      '^.+\\.ts$': [
        require.resolve('@swc/jest'),
        {
          jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: false } },
          module: { type: 'commonjs', ignoreDynamic: true },
          sourceMaps: 'inline',
        },
      ],
    },
    moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
    testEnvironmentOptions: { customExportConditions: ['@nodepool/source', 'node', 'node-addons'] },
    reporters: ['default', require.resolve('./results-reporter.cjs')],
    // A bound for tests that hang. A busy machine must not reach it.
    testTimeout: 1_800_000,
    maxWorkers: 2,
  };
};
