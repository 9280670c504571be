module.exports = {
  ...require('../../tooling/jest/preset.cjs')(__dirname),
  // Copies of the workspace, and programs that work on them: time for slow machines.
  testTimeout: 300_000,
};
