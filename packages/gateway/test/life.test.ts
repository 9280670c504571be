/** The life of leases over HTTP. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NodeInterruption } from '@nodepool/core';
import { LeaseEndedError, type LeaseDocument } from '@nodepool/requestor/http';
import { inState, until, World, type RunningGateway } from './support/world.js';

let world: World;
let gateway: RunningGateway;

beforeEach(async () => {
  world = await World.start();
  gateway = await world.gateway();
});
afterEach(() => world.stop());

it('a lease gets its nodes, is renewed, and returns them when it is released', async () => {
  const client = gateway.client();
  const created = await client.create({ labels: ['debian', 'debian-large'], name: 'build 17', data: { build: 17 } });
  expect(created).toMatchObject({ state: 'waiting', name: 'build 17', tenant: 'acme', created_by: 'acme', nodes: [] });
  const ready = await client.ready(created.id);
  expect(ready).toMatchObject({ state: 'ready', phase: 'in-use', end: null, request: null, data: { build: 17 } });
  expect(ready.nodes).toMatchObject([
    { label: 'debian', state: 'in-use', address: '192.0.2.7', username: 'zuul', connection_port: 22 },
    { label: 'debian-large', state: 'in-use', host_keys: ['ssh-ed25519 AAAAC3'] },
  ]);
  expect(world.paths('/nodepool/requests')).toEqual([]);
  expect(world.contenders()).toHaveLength(2);

  const renewed = await client.renew(created.id, { lifetime: 7200 });
  expect(Date.parse(renewed.expires ?? '') - Date.parse(ready.expires ?? '')).toBeGreaterThan(3_500_000);
  const released = await client.release(created.id, { outcome: 'success', comment: 'done' });
  expect(released).toMatchObject({ state: 'ending', end: { reason: 'released', outcome: 'success', comment: 'done' } });
  const ended = await inState(client, created.id, 'ended');
  expect(ended.nodes.map(({ state }) => state)).toEqual(['returned', 'returned']);
  await world.clean();
  expect(await client.release(created.id)).toMatchObject({ state: 'ended', end: { outcome: 'success' } });
  await expect(client.renew(created.id)).rejects.toMatchObject({ code: 'conflict', status: 409 });
});

it('a lease that waits tells why, and is withdrawn when it is released', async () => {
  world.launcher.mode = 'wait';
  const client = gateway.client();
  const { id } = await client.create({ labels: ['debian'] });
  await until(async () => (await client.get(id)).request !== null);
  expect(await client.get(id)).toMatchObject({
    phase: 'queued',
    reasons: ['waits for pool main of provider cloud (launcher launcher)'],
    request: '200-0000000000',
  });
  await client.release(id, { outcome: 'cancelled' });
  await inState(client, id, 'ended');
  await world.clean();
});

it('a lease that no pool can serve fails with the reasons', async () => {
  world.launcher.mode = 'fail';
  const client = gateway.client();
  const { id } = await client.create({ labels: ['debian'] });
  const failure = await client.ready(id).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(LeaseEndedError);
  expect((failure as LeaseEndedError).lease).toMatchObject({
    end: { reason: 'failed' },
    reasons: ['pool main of provider cloud (launcher launcher) declined: the image is missing'],
  });
  await inState(client, id, 'ended');
  await world.clean();
});

it('a lease names its lost nodes, and ends without nodes', async () => {
  const client = gateway.client();
  const { id } = await client.create({ labels: ['debian'], count: 2 });
  const { nodes } = await client.ready(id);
  const seen: LeaseDocument[] = [];
  const following = (async () => {
    for await (const lease of client.follow(id)) seen.push(lease);
  })();
  const [first, second] = nodes.map((node) => node.id);
  const remove = async (node = ''): Promise<void> => {
    const handle = await world.launcher.store.nodes.adopt(node, `lease/${id}`);
    await handle?.release({ state: 'deleting' });
  };
  await remove(first);
  await until(async () => (await client.get(id)).nodes[0]?.state === 'lost');
  expect(await client.get(id)).toMatchObject({
    state: 'ready',
    nodes: [{ id: first, state: 'lost' }, { state: 'in-use' }],
  });
  await client.renew(id);
  await remove(second);
  await following;
  expect(seen.at(-1)).toMatchObject({ state: 'ended', end: { reason: 'lost' } });
  expect(seen.some(({ state, nodes: [one] }) => state === 'ready' && one?.state === 'lost')).toBe(true);
  expect(seen.at(-1)?.reasons).toHaveLength(3);
  await world.clean();
});

it('the loss of the machine of a node is told, and the lease continues', async () => {
  const client = gateway.client();
  const { id } = await client.create({ labels: ['debian'] });
  const { nodes } = await client.ready(id);
  expect(nodes[0]?.interruption).toBeNull();
  const { store } = world.launcher;
  const interruption = {
    kind: 'reclaimed',
    reason: 'its spot instance ends',
    time: 1_700_000_000,
    ends_at: 1_700_000_120,
  };
  const entry = store.nodes.get(nodes[0]?.id ?? '');
  const told = (async (): Promise<LeaseDocument | undefined> => {
    for await (const lease of client.follow(id)) if (lease.nodes[0]?.interruption !== null) return lease;
    return undefined;
  })();
  expect(await store.nodes.setInterruption(entry!, interruption as NodeInterruption)).toBe(true);
  expect(await told).toMatchObject({
    state: 'ready',
    reasons: [`node ${nodes[0]?.id} is interrupted: its spot instance ends`],
    nodes: [{ state: 'in-use', interruption: { kind: 'reclaimed', ends: '2023-11-14T22:15:20.000Z' } }],
  });
  await client.release(id);
  await inState(client, id, 'ended');
  await world.clean();
});

it('held nodes stay unlocked on hold, and are deleted by a release', async () => {
  const client = gateway.client();
  const { id } = await client.create({ labels: ['debian'] });
  const { nodes } = await client.ready(id);
  await client.hold(id, { seconds: 3600, comment: 'look at the disk', outcome: 'failure' });
  const ended = await inState(client, id, 'ended');
  expect(ended).toMatchObject({ end: { reason: 'held', outcome: 'failure' }, nodes: [{ state: 'held' }] });
  const node = world.launcher.store.nodes.get(nodes[0]?.id ?? '');
  expect(node).toMatchObject({
    locked: false,
    node: { state: 'hold', hold_expiration: 3600, comment: 'look at the disk', job_result: 'failure' },
  });
  await expect(client.hold(id, { seconds: 60 })).rejects.toMatchObject({ code: 'conflict' });
  await client.release(id);
  await world.clean();
  expect((await inState(client, id, 'ended')).end).toMatchObject({ reason: 'released', outcome: 'failure' });
});

describe('an idempotency key', () => {
  it('creates one lease, whatever is repeated', async () => {
    world.launcher.mode = 'wait';
    const client = gateway.client();
    const leases = await Promise.all(
      Array.from({ length: 20 }, () => client.create({ labels: ['debian'] }, { key: 'job 1' })),
    );
    expect(new Set(leases.map(({ id }) => id)).size).toBe(1);
    expect(world.paths('/nodepool/requests')).toHaveLength(1);
    await expect(client.create({ labels: ['debian', 'debian'] }, { key: 'job 1' })).rejects.toMatchObject({
      code: 'key-reused',
      status: 422,
    });
    const another = await client.create({ labels: ['debian'] }, { key: 'job 2' });
    expect(another.id).not.toBe(leases[0]?.id);
  });

  it('belongs to its token', async () => {
    const [one, two] = [gateway.client(), gateway.client('token-of-other-0123456789')];
    const [first, second] = await Promise.all(
      [one, two].map((client) => client.create({ labels: ['debian'] }, { key: 'job 1' })),
    );
    expect(first?.id).not.toBe(second?.id);
  });

  it('creates one lease although ZooKeeper loses answers', async () => {
    const client = gateway.client();
    for (const when of ['after-applied', 'before-applied'] as const) {
      world.server.loseNextWrite(gateway.zooKeeper, when);
      const lease = await client.create({ labels: ['debian'] }, { key: when });
      await client.ready(lease.id);
    }
    expect(world.paths('/nodepool/gateway/leases')).toHaveLength(2);
    expect(world.contenders()).toHaveLength(2);
  });
});

it('a node that is deleted before it is locked is replaced', async () => {
  world.launcher.mode = 'wait';
  const client = gateway.client();
  const second = await world.gateway();
  await gateway.stop();
  const other = second.client();
  const { id } = await other.create({ labels: ['debian'] });
  const { store } = world.launcher;
  // Deletes the node in the same moment in which the request is fulfilled.
  const unsubscribe = store.nodes.onChange(({ after }) => {
    if (after?.node.state !== 'ready' || after.locked) return;
    unsubscribe();
    void store.nodes.tryLock(after.id).then((handle) => handle?.remove());
  });
  world.launcher.resume();
  const ready = await other.ready(id);
  expect(ready.nodes).toHaveLength(1);
  await other.release(id);
  await world.clean();
  expect(client).toBeDefined();
});

it('a lease continues the trace of the call that creates it', async () => {
  world.launcher.mode = 'wait';
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const createWith = (headers: Record<string, string>): Promise<Response> =>
    gateway.fetch('/v1/leases', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ labels: ['debian'] }),
    });
  const created = [await createWith({ traceparent }), await createWith({ traceparent: 'no trace' })];
  const requests = world.paths('/nodepool/requests').map((path) => {
    const data = world.server.dump().get(path)?.data ?? new Uint8Array();
    return (JSON.parse(Buffer.from(data).toString()) as { requestor_data: Record<string, unknown> }).requestor_data;
  });
  expect(requests.map(({ traceparent: found }) => found)).toEqual([traceparent, undefined]);
  for (const response of created) {
    const { id } = (await response.json()) as LeaseDocument;
    await gateway.client().release(id);
  }
});
