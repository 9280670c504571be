// Asserts that a connection to an unused port fails with an error.
'use strict';

const assert = require('node:assert');
const { connect, isZooKeeperError } = require('@nodepool/zookeeper');

async function main() {
  const client = connect({ servers: '127.0.0.1:1' });
  await assert.rejects(client.connected({ timeoutMs: 200 }), (error) => isZooKeeperError(error));
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
