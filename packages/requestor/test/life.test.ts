/** The life of a request and of its nodes, as the server sees it. */

import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  LeaseLostError,
  NodeNotReadyError,
  RequestFailedError,
  RequestRemovedError,
  RequestTimeoutError,
  type Interruption,
  type RequestProgress,
} from '../src/index.js';
import type { JsonObject } from '@nodepool/core';
import { encode, POOL } from './support/scripted-launcher.js';
import { World } from './support/world.js';

let world: World;

beforeEach(async () => {
  world = await World.start();
});

afterEach(() => world.stop());

/** The fields of a request as Zuul's client writes them, in its order (`NodeRequest.toDict` in zuul/model.py). */
const ZUUL_FIELDS = [
  'requestor_data',
  'node_types',
  'requestor',
  'created_time',
  'provider',
  'state',
  'state_time',
  'relative_priority',
  'event_id',
  'tenant_name',
];

describe('a request', () => {
  it('is written field by field as Zuul writes it', async () => {
    world.launcher.mode = 'wait';
    const spec = { labels: ['small', 'big'], tenant: 'tenant-one', eventId: 'event', data: { build_set_uuid: 'b' } };
    const { id } = await world.run(world.requestor.request(spec));

    expect(id).toMatch(/^200-\d{10}$/);
    const record = world.records('requests').get(id);
    expect(Object.keys(record ?? {})).toEqual(ZUUL_FIELDS);
    const now = world.clock.now() / 1000;
    expect(record).toMatchObject({
      requestor_data: { build_set_uuid: 'b' },
      node_types: ['small', 'big'],
      requestor: 'test',
      provider: null,
      state: 'requested',
      relative_priority: 0,
      event_id: 'event',
      tenant_name: 'tenant-one',
    });
    expect(Math.abs(Number(record?.['created_time']) - now)).toBeLessThan(1);
  });

  it('has no field that the Python requestor does not write, except the refusal to reuse nodes', async () => {
    const python = readFileSync(`${__dirname}/../../../tooling/requestor/requestor.py`, 'utf8');
    const submitted = /request = \{(.*?)\n {8}\}/s.exec(python)?.[1] ?? '';
    const fields = [...submitted.matchAll(/^ {12}"(\w+)":/gm)].map(([, name]) => name);
    world.launcher.mode = 'wait';
    const { id } = await world.run(world.requestor.request({ labels: ['small'], reuse: false }));

    expect(fields).toEqual(expect.arrayContaining(Object.keys(world.records('requests').get(id) ?? {})));
  });

  it('is deleted with the session unless it is durable', async () => {
    world.launcher.mode = 'wait';
    const durable = await world.run(world.requestor.request({ labels: ['small'], durable: true }));
    await world.run(world.requestor.request({ labels: ['small'] }));
    await world.run(world.zooKeeper.close());

    expect([...world.records('requests').keys()]).toEqual([durable.id]);
  });

  it.each([
    [{ labels: [] }, /at least one label/],
    [{ labels: ['small'], priority: 1000 }, /from 0 to 999/],
    [{ labels: ['small'], priority: 1.5 }, /from 0 to 999/],
  ])('is rejected: %j', async (spec, message) => {
    await expect(world.requestor.request(spec)).rejects.toThrow(message);
  });

  it('shows its progress, with reasons', async () => {
    world.launcher.mode = 'wait';
    const request = await world.run(world.requestor.request({ labels: ['small', 'gone'] }));
    const other = await world.run(world.requestor.request({ labels: ['small'] }));
    const seen: RequestProgress[] = [];
    const first = request.progress();
    seen.push((await world.run(first.next())).value as RequestProgress);
    await first.return();
    const second = other.progress();
    seen.push((await world.run(second.next())).value as RequestProgress);
    world.launcher.mode = 'serve';
    seen.push((await world.run(second.next())).value as RequestProgress);

    expect(seen.map(({ state, reasons }) => [state, ...reasons])).toEqual([
      ['requested', 'no registered pool offers gone'],
      ['requested', 'waits for pool main of provider cloud (launcher launcher-1)'],
      ['fulfilled'],
    ]);
    expect((await world.run(second.next())).done).toBe(true);
  });

  it('names the pools of other providers if its provider has none', async () => {
    world.launcher.mode = 'wait';
    const request = await world.run(world.requestor.request({ labels: ['small'], provider: 'another' }));
    const progress = request.progress();
    expect((await world.run(progress.next())).value).toMatchObject({
      reasons: ['waits for pool main of provider cloud (launcher launcher-1)'],
    });
    await progress.return();
  });

  it('reports that its pools are out of capacity or that their clouds fail, which looks the same', async () => {
    world.launcher.mode = 'wait';
    const request = await world.run(world.requestor.request({ labels: ['small'] }));
    const progress = request.progress();
    await world.run(progress.next());
    const [pool] = [...world.server.dump().keys()].filter((path) => path.startsWith('/nodepool/components/pool/'));
    await world.run(world.zooKeeper.set(pool ?? '', encode({ ...POOL, paused: true })));

    expect((await world.run(progress.next())).value).toMatchObject({
      reasons: [expect.stringMatching(/: limits are in use, the cloud is full, or the provider is out of service$/)],
    });
    await progress.return();
  });

  it('fails with the pools that declined, and their reasons', async () => {
    world.launcher.mode = 'fail';
    const request = await world.run(world.requestor.request({ labels: ['small'] }));
    const error = await world.run(request.fulfilled().catch((reason: unknown) => reason));

    expect(error).toBeInstanceOf(RequestFailedError);
    const reason = expect.stringMatching(/^pool main of provider .* declined: the image is missing$/);
    expect(error).toMatchObject({ declinedBy: [POOL.id], reasons: [reason] });
    expect(String(error)).toContain('declined: the image is missing');
  });

  it('is changed while it waits, and not after a launcher accepted it', async () => {
    world.launcher.mode = 'wait';
    const request = await world.run(world.requestor.request({ labels: ['small'], durable: true }));
    expect(await world.run(request.revise({ relativePriority: 7 }))).toBe(true);
    expect(world.records('requests').get(request.id)).toMatchObject({ relative_priority: 7 });
    expect(Object.keys(world.records('requests').get(request.id) ?? {})).toEqual(ZUUL_FIELDS);

    const lock = `/nodepool/requests-lock/${request.id}/a__lock__`;
    const { path } = await world.run(world.zooKeeper.create(lock, undefined, { mode: 'ephemeral-sequential' }));
    expect(await world.run(request.revise({ relativePriority: 8 }))).toBe(false);
    expect(world.records('requests').get(request.id)).toMatchObject({ relative_priority: 7 });
    await world.run(world.zooKeeper.delete(path));
    const fulfilled = { state: 'fulfilled', node_types: ['small'], nodes: [] };
    await world.run(world.zooKeeper.set(`/nodepool/requests/${request.id}`, encode(fulfilled)));
    expect(await world.run(request.revise({ relativePriority: 8 }))).toBe(false);
    expect(world.records('requests').get(request.id)).toEqual(fulfilled);
    await world.run(request.cancel());
    await expect(world.run(request.revise({ relativePriority: 9 }))).rejects.toThrow(RequestRemovedError);
  });

  it('distinguishes the ends of its wait: cancelled, removed, timed out, interrupted', async () => {
    world.launcher.mode = 'wait';
    const ends: unknown[] = [];
    for (const end of ['cancel', 'remove', 'deadline', 'interrupt'] as const) {
      const request = await world.run(world.requestor.request({ labels: ['small'] }));
      const interrupt = new AbortController();
      const waiting = request.fulfilled({
        signal: interrupt.signal,
        ...(end === 'deadline' ? { timeoutMs: 5000 } : {}),
      });
      waiting.then(
        () => ends.push('fulfilled'),
        (error: unknown) => ends.push(error),
      );
      await world.clock.advance(1000);
      if (end === 'cancel') await world.run(request.cancel());
      if (end === 'remove') await world.run(world.zooKeeper.delete(`/nodepool/requests/${request.id}`));
      if (end === 'interrupt') interrupt.abort(new Error('Ctrl-C'));
      await world.clock.advance(10_000);
      await world.run(request.cancel());
    }

    expect(ends).toEqual([
      expect.objectContaining({ code: 'request-removed', reason: 'cancelled' }),
      expect.objectContaining({ code: 'request-removed', reason: 'removed' }),
      expect.any(RequestTimeoutError),
      expect.objectContaining({ message: 'Ctrl-C' }),
    ]);
  });

  it('is resumed by its id after a restart', async () => {
    const { id } = await world.run(world.requestor.request({ labels: ['small'], durable: true }));
    const lease = await world.run(world.requestor.resume(id).take());

    expect(lease.nodes.map(({ label, state }) => [label, state])).toEqual([['small', 'in-use']]);
    await world.run(lease.return());
  });
});

it('nodes that were locked and could not be marked in-use are returned', async () => {
  const request = await world.run(world.requestor.request({ labels: ['small'] }));
  const stop = new AbortController();
  world.server.onCommit((changes) => {
    if (
      changes.some(
        ({ path }) => path === `/nodepool/requests/${request.id}` && !world.records('requests').has(request.id),
      )
    )
      stop.abort(new Error('Ctrl-C'));
  });
  await expect(world.run(request.take({ signal: stop.signal }))).rejects.toThrow('Ctrl-C');
  await world.clock.advance(1000);
  expect(world.contenders()).toEqual([]);
  expect([...world.records('nodes').values()].map(({ state }) => state)).not.toContain('in-use');
});

it('nodes are returned if the lock of one of them is lost before they are marked in-use', async () => {
  const request = await world.run(world.requestor.request({ labels: ['small', 'big'] }));
  let lost: string | undefined;
  world.server.onCommit(() => {
    if (lost !== undefined || world.records('requests').has(request.id)) return;
    [lost = ''] = world.contenders();
    void world.zooKeeper.delete(lost);
  });
  await expect(world.run(request.take())).rejects.toThrow(LeaseLostError);
  await world.clock.advance(1000);
  expect(lost).toMatch(/^\/nodepool\/nodes\//);
  expect(world.contenders()).toEqual([]);
});

describe('an interruption', () => {
  const LOSS = { kind: 'reclaimed', reason: 'the cloud takes its instance i-1 away', time: 5, ends_at: 125 };

  async function interrupt(id: string, interruption: JsonObject | null): Promise<void> {
    const path = `/nodepool/nodes/${id}`;
    const data = encode({ ...world.records('nodes').get(id), interruption });
    await world.run(world.other.set(path, data));
    await world.clock.advance(100);
  }

  it('is told to the holder once, which returns the node as usual', async () => {
    const lease = await world.run(world.requestor.acquire({ labels: ['small', 'big'] }));
    const told: Interruption[] = [];
    const late: Interruption[] = [];
    lease.onInterruption((each) => told.push(each));
    const [id = '', other = ''] = lease.nodes.map((node) => node.id);
    await interrupt(other, LOSS);
    const expected = {
      nodeId: other,
      kind: 'reclaimed',
      reason: LOSS.reason,
      noticedAt: 5000,
      endsAt: 125_000,
    };
    expect(told).toEqual([expected]);
    // Other changes are no news.
    await interrupt(other, { ...LOSS, reason: 'in other words' });
    await interrupt(other, null);
    expect(told).toEqual([expected]);
    await interrupt(id, { kind: 'missing', reason: 'gone', time: 6, ends_at: null });
    expect(told.slice(1)).toMatchObject([{ nodeId: id, endsAt: undefined }]);
    const stop = lease.onInterruption((each) => late.push(each));
    expect(late).toMatchObject([{ nodeId: id }]);
    stop();
    await interrupt(other, LOSS);
    expect(told).toHaveLength(3);
    expect(late).toHaveLength(1);
    expect(lease.lost.aborted).toBe(false);
    await world.run(lease.return());
    await world.run(lease.deleted());
  });

  it('is not watched without a listener, nor after the end of the lease', async () => {
    const lease = await world.run(world.requestor.acquire({ labels: ['small'] }));
    const [id = ''] = lease.nodes.map((node) => node.id);
    await interrupt(id, LOSS);
    await world.run(lease.confirm());
    await world.run(lease.return());
    const told: Interruption[] = [];
    lease.onInterruption((each) => told.push(each));
    await world.clock.advance(1000);
    expect(told).toEqual([]);
  });

  it('is told after a lost connection, too', async () => {
    const lease = await world.run(world.requestor.acquire({ labels: ['small'] }));
    const told: Interruption[] = [];
    lease.onInterruption((each) => told.push(each));
    await world.clock.advance(100);
    const [id = ''] = lease.nodes.map((node) => node.id);
    world.server.partition(world.zooKeeper);
    await interrupt(id, LOSS);
    world.server.heal(world.zooKeeper);
    await world.clock.advance(8000);
    expect(told).toMatchObject([{ nodeId: id }]);
    await world.run(lease.return());
  });
});

describe('a lease', () => {
  it('locks the nodes and deletes the request, marks them in use, then used, and unlocks them', async () => {
    const request = await world.run(world.requestor.request({ labels: ['big', 'small'] }));
    const lease = await world.run(request.lock());
    expect(lease.nodes.map(({ label, state, provider }) => [label, state, provider])).toEqual([
      ['big', 'ready', 'cloud'],
      ['small', 'ready', 'cloud'],
    ]);
    expect(world.records('requests').size).toBe(0);
    expect(world.contenders()).toHaveLength(2);

    await world.run(lease.use({ userData: { job: 1 } }));
    expect([...world.records('nodes').values()]).toEqual([
      expect.objectContaining({ state: 'in-use', user_data: { job: 1 }, x_future: 1 }),
      expect.objectContaining({ state: 'in-use', user_data: { job: 1 }, x_future: 1 }),
    ]);
    await world.run(lease.confirm());
    const deleted = lease.deleted();
    await world.run(lease.return());
    await world.run(deleted);
    expect([world.records('nodes').size, world.contenders()]).toEqual([0, []]);
    expect(lease.lost.aborted).toBe(false);
    await expect(world.run(lease.use())).rejects.toThrow(LeaseLostError);
  });

  it('returns unused nodes unchanged', async () => {
    const request = await world.run(world.requestor.request({ labels: ['small'] }));
    const lease = await world.run(request.lock());
    const states: unknown[] = [];
    world.server.onCommit(() => states.push(...[...world.records('nodes').values()].map(({ state }) => state)));
    await world.run(lease.return());

    expect(new Set(states)).toEqual(new Set(['ready']));
  });

  it('sets the nodes on hold', async () => {
    const lease = await world.run(world.requestor.acquire({ labels: ['small'] }));
    await world.run(lease.hold({ comment: 'look', job: 'unit', expirationSeconds: 60 }));
    await world.run(lease.return());
    await world.clock.advance(60_000);

    expect([...world.records('nodes').values()]).toEqual([
      expect.objectContaining({ state: 'hold', comment: 'look', hold_job: 'unit', hold_expiration: 60 }),
    ]);
    expect(world.contenders()).toEqual([]);
  });

  it('is rejected when a node was deleted before it was locked; no lock remains', async () => {
    const request = await world.run(world.requestor.request({ labels: ['small', 'big'] }));
    const [first = ''] = await world.run(request.fulfilled());
    const path = `/nodepool/nodes/${first}`;
    await world.run(
      world.zooKeeper.set(path, encode({ state: 'deleting', type: ['small'], allocated_to: request.id })),
    );

    await expect(world.run(request.lock())).rejects.toThrow(NodeNotReadyError);
    await world.clock.advance(1000);
    expect(world.contenders()).toEqual([]);
    await world.run(request.cancel());
  });

  it('is rejected when a node was allocated to another request before it was locked; no lock remains', async () => {
    const other = await world.run(world.requestor.request({ labels: ['small'] }));
    const request = await world.run(world.requestor.request({ labels: ['small', 'big'] }));
    const [first = ''] = await world.run(request.fulfilled());
    const moved = { state: 'ready', type: ['small'], allocated_to: other.id };
    await world.run(world.zooKeeper.set(`/nodepool/nodes/${first}`, encode(moved)));

    await expect(world.run(request.lock())).rejects.toThrow(`is ready and allocated to ${other.id}`);
    await world.clock.advance(1000);
    expect(world.contenders()).toEqual([]);
    await world.run(request.cancel());
    await world.run(other.cancel());
  });

  it('is lost when another program deletes a lock', async () => {
    const lease = await world.run(world.requestor.acquire({ labels: ['small'] }));
    await world.run(world.zooKeeper.delete(world.contenders()[0] ?? ''));
    await world.clock.advance(100);

    expect(lease.lost.reason).toBeInstanceOf(LeaseLostError);
    await expect(world.run(lease.confirm())).rejects.toThrow(LeaseLostError);
    await expect(world.run(lease.hold())).rejects.toThrow(LeaseLostError);
    await world.run(lease.return());
  });
});

it('acquires with progress reports, and withdraws the request at the deadline', async () => {
  const states: string[] = [];
  const onProgress = ({ state }: RequestProgress): void => void states.push(state);
  const lease = await world.run(world.requestor.acquire({ labels: ['small'] }, { onProgress }));
  await world.run(lease.return());
  expect(states).toEqual(['requested', 'fulfilled']);

  world.launcher.mode = 'wait';
  await expect(world.run(world.requestor.acquire({ labels: ['small'] }, { timeoutMs: 5000 }))).rejects.toThrow(
    'no nodes for small within 5 s',
  );
  expect(world.records('requests').size).toBe(0);
});

it('lists the offered labels', async () => {
  expect([...(await world.run(world.requestor.labels()))]).toEqual(['small', 'big']);
});

it('rejects all waits when it is closed', async () => {
  world.launcher.mode = 'wait';
  const request = await world.run(world.requestor.request({ labels: ['small'] }));
  const waiting = request.fulfilled();
  waiting.catch(() => undefined);
  await world.run(world.requestor.close());

  await expect(world.run(waiting)).rejects.toThrow('the requestor is closed');
});
