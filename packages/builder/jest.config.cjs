module.exports = {
  ...require('../../tooling/jest/preset.cjs')(__dirname),
  // Days of virtual time on slow machines.
  testTimeout: 60_000,
};
