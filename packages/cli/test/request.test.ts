import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World, type RunningCli } from './world.js';

let world: World;
beforeEach(async () => {
  world = new World();
  await world.start();
});
afterEach(() => world.stop());

function eventsOf({ out }: RunningCli): readonly Record<string, unknown>[] {
  return out.printed.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('nodepool request', () => {
  it('acquires nodes, shows them, marks them in use, returns them as used, and waits for their deletion', async () => {
    await world.pool(['small', 'big']);
    const running = world.cli('request', 'small', 'big', '--tenant', 't1', '--priority', '100');
    await world.until(() => world.store.requests.size === 1);
    const [entry] = world.store.requests.all();
    expect(entry?.id).toMatch(/^100-/);
    expect(entry?.request).toMatchObject({ node_types: ['small', 'big'], tenant_name: 't1', reuse: true });
    const [small, big] = await world.fulfil();
    await world.until(() => running.out.noted.includes('holding the nodes until interrupted'));
    expect(running.out.noted).toMatch(/requested;.*\n.*pending;.*\n.*fulfilled/);
    const rows = running.out.printed.split('\n').slice(3, 5);
    expect(rows[0]).toContain(`| ${small} | cloud    | small | 192.0.2.9`);
    expect(rows[1]).toContain(`| ${big} | cloud    | big   | 192.0.2.9`);
    await world.until(() => world.store.requests.size === 0);
    for (const id of [small!, big!])
      expect(world.store.nodes.get(id)).toMatchObject({ locked: true, node: { state: 'in-use' } });
    running.interrupt();
    await world.until(() => world.stateOf(big!) === 'used');
    await world.remove(small!);
    expect(running.code).toBeUndefined();
    await world.remove(big!);
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(0);
    expect(running.out.noted).toContain('all nodes are deleted');
  });

  it('requests --count nodes of each label, and returns them after --hold seconds', async () => {
    const running = world.cli('request', 'small', '--count', '2', '--hold', '60', '--format', 'json');
    const ids = await world.fulfil();
    expect(ids).toHaveLength(2);
    await world.until(() => running.out.noted.includes('holding the nodes for 60 s'));
    expect(eventsOf(running).at(-1)).toMatchObject({
      event: 'leased',
      nodes: ids.map((id) => ({ id, label: 'small' })),
    });
    await world.clock.advance(59_000);
    expect(world.stateOf(ids[0]!)).toBe('in-use');
    await world.clock.advance(1000);
    await world.until(() => world.stateOf(ids[0]!) === 'used');
    for (const id of ids) await world.remove(id);
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(0);
  });

  it('reports the interruption of a node as an event', async () => {
    const running = world.cli('request', 'small', '--hold', '60', '--format', 'json', '--no-wait');
    const [id = ''] = await world.fulfil();
    await world.until(() => running.out.noted.includes('holding'));
    await world.until(() => world.stateOf(id) === 'in-use');
    const loss = { kind: 'failed', reason: 'its instance has failed', time: 5, ends_at: null } as const;
    await world.finish(world.store.nodes.setInterruption(world.store.nodes.get(id)!, loss));
    await world.until(() => running.out.noted.includes('interrupted'));
    expect(eventsOf(running).at(-1)).toMatchObject({
      event: 'interrupted',
      ...{ node: id, kind: 'failed', reason: 'its instance has failed', ends_at: null },
    });
    await world.clock.advance(60_000);
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(0);
  });

  it('prints the reasons of the wait', async () => {
    await world.pool(['big']);
    const running = world.cli('request', 'small', 'big');
    await world.until(() => running.out.noted.includes('requested'));
    expect(running.out.noted).toContain('no registered pool offers small');
    running.interrupt();
    await world.until(() => running.code !== undefined);
  });

  it('fails with the pools that declined when the request fails, and deletes the request', async () => {
    const running = world.cli('request', 'small');
    await world.until(() => world.store.requests.size === 1);
    const [entry] = world.store.requests.all();
    const accepted = (await world.finish(world.store.requests.accept(entry!, { create: [], reuse: [] })))!;
    const declines = { declined_by: ['pool-a\u001b[2J'], decline_reasons: { 'pool-a\u001b[2J': 'no image\u001b[2J' } };
    await world.finish(accepted.request.release({ state: 'failed', ...declines }));
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(1);
    expect(running.out.noted).toMatch(
      /nodepool: request .* failed: pool pool-a\\u001b\[2J declined: no image\\u001b\[2J/,
    );
    await world.until(() => world.store.requests.size === 0);
  });

  it('prints the explanation of a launcher for a failed request, and then only refers to it', async () => {
    const server = createServer((_request, response) => response.end('{"summary":"Its image is missing."}'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await world.launcher({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
    const running = world.cli('request', 'small');
    await world.until(() => world.store.requests.size === 1);
    const [entry] = world.store.requests.all();
    const accepted = (await world.finish(world.store.requests.accept(entry!, { create: [], reuse: [] })))!;
    await world.finish(accepted.request.release({ state: 'failed', declined_by: ['pool-a', 'pool-b'] }));
    await world.until(() => running.code !== undefined);
    expect(running.out.noted).toContain('\n  Its image is missing.\n');
    expect(running.out.noted).toMatch(/\nnodepool: request \S+ failed: 2 pools declined it; the reasons are above\n?$/);
    server.close();
    await once(server, 'close');
  });

  it('withdraws the request at its timeout', async () => {
    const running = world.cli('request', 'small', '--timeout', '30');
    await world.until(() => running.out.noted.includes('requested'));
    await world.clock.advance(30_000);
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(3);
    expect(running.out.noted).toContain(
      'no nodes for small within 30 s; the request is cancelled: no registered pool offers small',
    );
    await world.until(() => world.store.requests.size === 0);
  });

  it('withdraws the request when it is interrupted', async () => {
    const running = world.cli('request', 'small');
    await world.until(() => running.out.noted.includes('requested'));
    running.interrupt();
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(1);
    await world.until(() => world.store.requests.size === 0);
  });

  it('fails when the session with the locks expires', async () => {
    const running = world.cli('request', 'small');
    const [id] = await world.fulfil();
    await world.until(() => running.out.noted.includes('holding the nodes'));
    world.server.expireSession(world.cliClients[0]!);
    while (running.code === undefined) await world.clock.advance(1000);
    expect(running.code).toBe(4);
    expect(running.out.noted).toContain('the locks of the nodes are lost');
    expect(world.stateOf(id!)).toBe('in-use');
  });

  it('returns the nodes when standard input ends', async () => {
    const running = world.cli('request', 'small', '--until-eof', '--no-wait', '--start-by', '2030-01-31T12:00:00Z');
    await world.until(() => world.store.requests.size === 1);
    const [entry] = world.store.requests.all();
    expect(entry?.request.requestor_data).toEqual({ 'start-by': Date.UTC(2030, 0, 31, 12) / 1000 });
    const [id] = await world.fulfil();
    await world.until(() => running.out.noted.includes('holding the nodes'));
    running.stdin.end();
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(0);
    await world.until(() => world.stateOf(id!) === 'used');
  });

  it('withdraws the request when standard input ends before it is fulfilled', async () => {
    const running = world.cli('request', 'small', '--until-eof');
    await world.until(() => world.store.requests.size === 1);
    running.stdin.end();
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(1);
    expect(running.out.noted).toContain('nodepool: standard input has ended');
    await world.until(() => world.store.requests.size === 0);
  });
});

describe('nodepool request --format json', () => {
  it('prints one event per line', async () => {
    await world.pool(['small']);
    const running = world.cli('request', 'small', '--format', 'json');
    const [id] = await world.fulfil();
    await world.until(() => running.out.noted.includes('holding the nodes'));
    running.interrupt();
    await world.until(() => world.stateOf(id!) === 'used');
    await world.remove(id!);
    await world.until(() => running.code !== undefined);
    const request = expect.stringMatching(/^200-\d{10}$/);
    const common = { time: expect.any(Number), request };
    const progress = { ...common, event: 'progress', declined_by: [] };
    const waits = { ...progress, state: 'requested', reasons: [expect.stringContaining('waits for pool main')] };
    const events = eventsOf(running);
    expect(events[0]).toEqual(waits);
    expect(events).toContainEqual({ ...progress, state: 'fulfilled', reasons: [] });
    expect(events.slice(-3)).toEqual([
      {
        ...common,
        event: 'leased',
        nodes: [expect.objectContaining({ id, label: 'small', address: null, host_keys: [] })],
      },
      { ...common, event: 'returned' },
      { ...common, event: 'deleted' },
    ]);
  });

  it('prints the reason of a failure last', async () => {
    const running = world.cli('request', 'small', '--format', 'json', '--timeout', '30');
    await world.until(() => running.out.printed.includes('requested'));
    await world.clock.advance(30_000);
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(3);
    expect(eventsOf(running).at(-1)).toMatchObject({
      event: 'failed',
      code: 'request-timeout',
      reason: expect.stringContaining('no registered pool offers small'),
    });
  });

  it('prints the loss of the nodes', async () => {
    const running = world.cli('request', 'small', '--format', 'json');
    await world.fulfil();
    await world.until(() => running.out.noted.includes('holding the nodes'));
    world.server.expireSession(world.cliClients[0]!);
    while (running.code === undefined) await world.clock.advance(1000);
    expect(running.code).toBe(4);
    expect(eventsOf(running).at(-1)).toMatchObject({ event: 'failed', code: 'lease-lost' });
  });
});
