// Asserts that a connection to an unused port fails with an error.
'use strict';

const assert = require('node:assert');
const { connectRequestor } = require('@nodepool/requestor');

async function main() {
  const connecting = connectRequestor({ name: 'smoke', servers: '127.0.0.1:1', timeoutMs: 200 });
  await assert.rejects(connecting, /127\.0\.0\.1:1/);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
