'use strict';
// A program that takes a durable lease, or waits for it, and never returns it. Arguments: servers, request id, owner.

const { connectRequestor } = require('@nodepool/requestor');

async function main() {
  const [servers, requestId, owner] = process.argv.slice(2);
  const requestor = await connectRequestor({ name: 'holder', servers, sessionTimeoutMs: 4000 });
  const lease = await requestor.resume(requestId).take({ durable: owner });
  process.stdout.write(`${JSON.stringify(lease.nodes.map(({ id }) => id))}\n`);
}

void main();
