// One process for all files: a second one would load the same modules again.
module.exports = { ...require('../../tooling/jest/preset.cjs')(__dirname), maxWorkers: 1 };
