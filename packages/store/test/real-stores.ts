/** Stores on a real ZooKeeper server, which starts before the tests of a file and stops after them. */

import { afterAll, beforeAll } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';
import { systemClock, systemRandom } from '@nodepool/core';
import { openStore, type Store } from '@nodepool/store';

/** Returns a function that connects a further store, which is closed with the server. */
export function realStores(): () => Promise<Store> {
  let server: ZooKeeperForTests;
  const clients: ZooKeeper[] = [];
  beforeAll(async () => {
    server = await zooKeeperForTests();
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.stop();
  });
  return async () => {
    const zooKeeper = connect({ servers: server.servers });
    clients.push(zooKeeper);
    const store = openStore(zooKeeper, { clock: systemClock, random: systemRandom, identifier: 'test-real' });
    store.start();
    await store.ready();
    return store;
  };
}
