/** The waits for conditions; the test writes the records of a launcher. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { labelsOffered, noNodesLeft, registeredPools } from '@nodepool/harness';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

const never = new AbortController().signal;
const NODE = '/nodepool/nodes/0000000000';

describe('a program', () => {
  let server: ZooKeeperForTests;
  let launcher: ZooKeeper;
  let zooKeeper: ZooKeeper;

  beforeAll(async () => {
    server = await zooKeeperForTests();
    launcher = connect({ servers: server.servers });
    for (const path of ['', '/requests', '/nodes', '/components', '/components/pool']) {
      await launcher.create(`/nodepool${path}`);
    }
  });

  beforeEach(() => {
    zooKeeper = connect({ servers: server.servers });
  });

  afterEach(async () => {
    await zooKeeper.close();
  });

  afterAll(async () => {
    await launcher.close();
    await server.stop();
  });

  it('can wait for the deletion of all nodes', async () => {
    await launcher.create(NODE);
    await launcher.create(`${NODE}/lock`);
    let gone = false;
    const waiting = noNodesLeft(zooKeeper, never).then(() => (gone = true));
    await zooKeeper.sync('/nodepool/nodes');
    expect(gone).toBe(false);

    for (const path of [`${NODE}/lock`, NODE]) await launcher.delete(path);
    expect(await waiting).toBe(true);
  });

  it('can wait for new pools that together offer the labels', async () => {
    const offer = (...labels: string[]): Promise<unknown> =>
      launcher.create('/nodepool/components/pool/host', Buffer.from(JSON.stringify({ supported_labels: labels })), {
        mode: 'persistent-sequential',
      });
    await offer('debian', 'fedora');
    await labelsOffered(zooKeeper, ['fedora'], never);

    const known = await registeredPools(zooKeeper);
    expect(known.size).toBe(1);
    const waiting = labelsOffered(zooKeeper, ['debian', 'fedora'], never, known);
    await offer('debian');
    await offer('fedora');
    await waiting;
    expect((await registeredPools(zooKeeper)).size).toBe(3);
  });

  it('stops waiting if its signal aborts', async () => {
    const stop = new AbortController();
    const waiting = labelsOffered(zooKeeper, ['plan9'], stop.signal);
    stop.abort(new Error('enough'));

    await expect(waiting).rejects.toThrow('enough');
  });
});
