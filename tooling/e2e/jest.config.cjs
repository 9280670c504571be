module.exports = {
  ...require('../../tooling/jest/preset.cjs')(__dirname),
  // These tests wait for programs and clouds most of the time.
  maxWorkers: 2,
};
