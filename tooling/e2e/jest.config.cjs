module.exports = {
  ...require('../../tooling/jest/preset.cjs')(__dirname),
  // Every file starts a ZooKeeper and launchers: one file at a time.
  maxWorkers: 1,
};
