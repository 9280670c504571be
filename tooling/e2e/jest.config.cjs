module.exports = {
  ...require('../../tooling/jest/preset.cjs')(__dirname),
  // Every file starts a ZooKeeper and launchers: one file at a time, and time for slow machines.
  maxWorkers: 1,
  testTimeout: 180_000,
};
