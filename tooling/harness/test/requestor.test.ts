/** The requestor in TypeScript, with this test in the part of the launcher. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { labelsOffered, noNodesLeft, registeredPools, Requestor } from '@nodepool/harness';
import { connect, lockRecipe, type ZooKeeper } from '@nodepool/zookeeper';

const never = new AbortController().signal;
const NODE = '/nodepool/nodes/0000000000';

describe('a requestor', () => {
  let server: ZooKeeperForTests;
  let launcher: ZooKeeper;
  let zooKeeper: ZooKeeper;
  let requestor: Requestor;

  beforeAll(async () => {
    server = await zooKeeperForTests();
    launcher = connect({ servers: server.servers });
    for (const path of ['', '/requests', '/nodes', '/components', '/components/pool']) {
      await launcher.create(`/nodepool${path}`);
    }
  });

  beforeEach(async () => {
    zooKeeper = connect({ servers: server.servers });
    requestor = new Requestor(zooKeeper, lockRecipe(zooKeeper), 'test');
    await requestor.start();
  });

  afterEach(async () => {
    requestor.stop();
    await zooKeeper.close();
  });

  afterAll(async () => {
    await launcher.close();
    await server.stop();
  });

  const write = (path: string, value: object): Promise<unknown> =>
    launcher.set(path, Buffer.from(JSON.stringify(value)));

  const read = async (path: string): Promise<unknown> =>
    JSON.parse(Buffer.from((await zooKeeper.get(path)).data).toString('utf8'));

  it('puts a request as Zuul does, and hears when it has ended', async () => {
    const { id, finished } = await requestor.submit(['debian', 'fedora'], 100);

    expect(id).toMatch(/^100-\d{10}$/);
    expect(await read(`/nodepool/requests/${id}`)).toMatchObject({
      state: 'requested',
      node_types: ['debian', 'fedora'],
      nodes: [],
      declined_by: [],
      requestor: 'test',
    });

    await write(`/nodepool/requests/${id}`, { state: 'pending' });
    await write(`/nodepool/requests/${id}`, { state: 'failed' });
    expect(await finished).toEqual({ id, state: 'failed', nodes: [] });
  });

  it('hears of requests that end while it puts others', async () => {
    const submitted = await Promise.all(Array.from({ length: 20 }, () => requestor.submit(['debian'])));
    await Promise.all(
      submitted.map(({ id }) => write(`/nodepool/requests/${id}`, { state: 'fulfilled', nodes: [id] })),
    );

    const ended = await Promise.all(submitted.map(({ finished }) => finished));
    expect(ended.map(({ nodes }) => nodes)).toEqual(submitted.map(({ id }) => [id]));
  });

  it('locks its nodes, removes its request and uses the nodes; and gives them back', async () => {
    const { id, finished } = await requestor.submit(['debian']);
    await launcher.create(NODE, Buffer.from(JSON.stringify({ state: 'ready', unknown: 1 })));
    await write(`/nodepool/requests/${id}`, { state: 'fulfilled', nodes: ['0000000000'] });

    const [node] = await requestor.take(await finished);
    expect(await read(NODE)).toMatchObject({ state: 'in-use', unknown: 1 });
    expect((await zooKeeper.children(`${NODE}/lock`)).children).toHaveLength(1);
    expect(await zooKeeper.exists(`/nodepool/requests/${id}`)).toBeUndefined();

    await requestor.giveBack(node!);
    expect(await read(NODE)).toMatchObject({ state: 'used', unknown: 1 });
    expect((await zooKeeper.children(`${NODE}/lock`)).children).toEqual([]);
    for (const path of [`${NODE}/lock`, NODE]) await launcher.delete(path);
  });

  it('can wait until all nodes are gone', async () => {
    await launcher.create(NODE);
    await launcher.create(`${NODE}/lock`);
    let gone = false;
    const waiting = noNodesLeft(zooKeeper, never).then(() => (gone = true));
    await zooKeeper.sync('/nodepool/nodes');
    expect(gone).toBe(false);

    for (const path of [`${NODE}/lock`, NODE]) await launcher.delete(path);
    expect(await waiting).toBe(true);
  });

  it('can wait until pools offer labels between them, without those that it knows of', async () => {
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

  it('stops to wait when it is told to', async () => {
    const stop = new AbortController();
    const waiting = labelsOffered(zooKeeper, ['plan9'], stop.signal);
    stop.abort(new Error('enough'));

    await expect(waiting).rejects.toThrow('enough');
  });
});
