// Asserts that a wrong line of a file of requests is named.
'use strict';

const assert = require('node:assert');
const { readDay } = require('@nodepool/plan');

async function main() {
  const reading = readDay([{ name: 'requests', lines: ['{"created": 1}', 'nonsense'] }]);
  await assert.rejects(reading, /requests, line 2/);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
