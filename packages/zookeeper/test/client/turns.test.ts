/** Limits on the received data that is handled in one turn of the event loop. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { connect, type ZooKeeper } from '../../src/index.js';
import { FakeServer, writeStat } from './fake-server.js';

const ANSWERS = 20;
/** Bytes: more than one read of a socket returns. */
const ANSWER_BYTES = 100_000;

let server: FakeServer;
let zk: ZooKeeper;

beforeEach(async () => {
  server = await FakeServer.listen();
  zk = connect({ servers: server.address });
});

afterEach(async () => {
  await Promise.all([server.close(), zk.close()]);
});

it('answers that arrive together are handled in several turns of the event loop', async () => {
  const peer = await server.session();
  await zk.connected();
  let inTurn = 0;
  let mostInTurn = 0;
  const reads = Array.from({ length: ANSWERS }, async (_, index) => {
    const { data } = await zk.get(`/node-${index}`);
    expect(data).toHaveLength(ANSWER_BYTES);
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    inTurn += 1;
    mostInTurn = Math.max(mostInTurn, inTurn);
  });
  const requests = [];
  for (let index = 0; index < ANSWERS; index += 1) requests.push(await peer.next());
  for (const { xid } of requests) {
    peer.reply(xid, 7n, 0, (writer) => {
      writer.buffer(Buffer.alloc(ANSWER_BYTES));
      writeStat(writer, 3);
    });
  }
  await Promise.all(reads);
  // The next chunk is handled just before the counter of the turn is reset.
  expect(mostInTurn).toBeLessThanOrEqual(2);
});
