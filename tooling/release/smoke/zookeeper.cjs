// The client gives up a connection to where nobody listens, and says so.
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
