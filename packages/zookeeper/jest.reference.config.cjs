module.exports = {
  ...require('../../tooling/jest/preset.cjs')(__dirname),
  testMatch: ['<rootDir>/test/reference/suite.ts'],
  reporters: [['default', { summaryThreshold: 1 }]],
  verbose: true,
};
