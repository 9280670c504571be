'use strict';
// The jest configuration of all packages: TypeScript is compiled by swc, and workspace packages resolve to their
// sources. Tests therefore need no build, and stack traces show source lines.

const transformer = require.resolve('./transform.cjs');

/** Libraries that are ES modules, which jest cannot `require` on Node.js 22. */
const ES_MODULES = '/node_modules/(?:commander|jose)/.+\\.js$';

/** @param {'typescript' | 'ecmascript'} syntax */
function swcOptions(syntax) {
  return {
    // As in tooling/tsconfig/base.json.
    jsc: {
      target: 'es2022',
      parser: { syntax, decorators: false },
      transform: { useDefineForClassFields: false },
    },
    module: { type: 'commonjs', ignoreDynamic: true },
    sourceMaps: true,
  };
}

/** @param {string} rootDir folder of the package under test */
module.exports = function preset(rootDir) {
  return {
    rootDir,
    // Names the folder of the cache, which all packages share.
    id: 'nodepool',
    testEnvironment: require.resolve('./environment.cjs'),
    testMatch: ['<rootDir>/test/**/*.test.ts'],
    transform: {
      '^.+\\.ts$': [transformer, swcOptions('typescript')],
      [ES_MODULES]: [transformer, swcOptions('ecmascript')],
    },
    transformIgnorePatterns: [`^(?!.*${ES_MODULES}).*/node_modules/`],
    moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
    testEnvironmentOptions: { customExportConditions: ['@nodepool/source', 'node', 'node-addons'] },
    reporters: ['default', require.resolve('./results-reporter.cjs')],
    // Time limit for tests that hang (ms), which is never reached on a busy machine.
    testTimeout: 1_800_000,
    maxWorkers: 2,
  };
};
