module.exports = {
  ...require('../../tooling/jest/preset.cjs')(__dirname),
  // Starts a ZooKeeper and launchers.
  testTimeout: 180_000,
};
