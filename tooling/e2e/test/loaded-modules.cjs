'use strict';
// Preloaded into a program (`--require`): writes the files that it has loaded to LOADED_MODULES_FILE when it ends.

const { writeFileSync } = require('node:fs');
const { isMainThread } = require('node:worker_threads');

if (isMainThread) {
  process.on('exit', () => writeFileSync(process.env.LOADED_MODULES_FILE, Object.keys(require.cache).join('\n')));
}
