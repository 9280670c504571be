import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NodeRequestData } from '@nodepool/core';
import { World } from './world.js';

const REQUEST: NodeRequestData = {
  state: 'requested',
  state_time: 0,
  node_types: ['small', 'big'],
  nodes: [],
  declined_by: [],
  decline_reasons: {},
  reuse: true,
  requestor: 'zuul',
  requestor_data: null,
  provider: null,
  relative_priority: 0,
  event_id: null,
  created_time: 0,
  tenant_name: null,
};

let world: World;
beforeEach(async () => {
  world = new World();
  await world.start();
});
afterEach(() => world.stop());

describe('nodepool wait', () => {
  it('ends with the nodes of a request once it is fulfilled', async () => {
    const id = await world.finish(world.store.requests.submit(REQUEST, { priority: 200 }));
    const waiting = world.cli('wait', 'request', id);
    const nodes = await world.fulfil();
    await world.until(() => waiting.code !== undefined);
    expect([waiting.code, waiting.out.printed.trim()]).toEqual([0, nodes.join('\n')]);
  });

  it('escapes control characters of records', async () => {
    const hostile = {
      nodes: ['\u001b[2J'],
      declined_by: ['pool-a\u009b2J\u202e', 'pool-b'],
      decline_reasons: { 'pool-b': 'no image\u009b' },
    };
    const submit = (state: 'fulfilled' | 'failed'): Promise<string> =>
      world.finish(world.store.requests.submit({ ...REQUEST, ...hostile, state }, { priority: 200 }));
    const fulfilled = world.cli('wait', 'request', await submit('fulfilled'));
    await world.until(() => fulfilled.code !== undefined);
    expect(fulfilled.out.printed).toBe('\\u001b[2J');
    const failed = world.cli('wait', 'request', await submit('failed'));
    await world.until(() => failed.code !== undefined);
    expect(failed.out.noted).toMatch(/failed: declined by pool-a\\u009b2J\\u202e, pool-b \(no image\\u009b\)$/);
  });

  it('ends when a node reaches the state, or is deleted', async () => {
    const id = await world.node({ state: 'building' });
    const ready = world.cli('wait', 'node', String(Number(id)));
    const handle = await world.finish(world.store.nodes.lock(id));
    await world.finish(handle.update({ state: 'ready' }));
    await world.until(() => ready.code !== undefined);
    expect([ready.code, ready.out.printed.trim()]).toEqual([0, 'ready']);
    const gone = world.cli('wait', 'node', id, '--state', 'gone');
    await world.finish(handle.remove());
    await world.until(() => gone.code !== undefined);
    expect([gone.code, gone.out.printed.trim()]).toEqual([0, 'gone']);
  });

  it('ends with the ready nodes of a label', async () => {
    const waiting = world.cli('wait', 'label', 'small');
    const id = await world.node({ state: 'ready' });
    await world.until(() => waiting.code !== undefined);
    expect([waiting.code, waiting.out.printed.trim()]).toEqual([0, id]);
  });

  it.each([
    ['debain', /^no launcher serves the label "debain" yet: did you mean "debian"\?\nnodepool: label debain has/],
    ['debian', /^nodepool: label debian has/],
    // The configuration has the label.
    ['small', /^nodepool: label small has/],
  ])('names a label that neither a launcher nor the configuration has, and waits for it: %s', async (label, noted) => {
    await world.pool(['debian']);
    const waiting = world.cli('wait', 'label', label, '--timeout', '30');
    await world.until(() => world.cliClients.length === 1);
    await world.clock.advance(31_000);
    await world.until(() => waiting.code !== undefined);
    expect([waiting.code, waiting.out.noted]).toEqual([1, expect.stringMatching(noted)]);
  });

  it('fails at its timeout, and names the command that explains the wait', async () => {
    const waiting = world.cli('wait', 'label', 'small', '--timeout', '30');
    await world.until(() => world.cliClients.length === 1);
    await world.clock.advance(31_000);
    await world.until(() => waiting.code !== undefined);
    expect(waiting.code).toBe(1);
    expect(waiting.out.noted).toContain('label small has a node that is ready: not reached within 30 s');
    expect(waiting.out.noted).toContain('nodepool explain label small');
  });

  it.each([
    [['node', '7'], 'there is no node 0000000007'],
    [['request', '200-0000000007'], 'there is no request 200-0000000007'],
    [['node', '7', '--state', 'happy'], 'happy is not a state of nodes', 2],
    [['label', 'small', '--state', 'ready'], '--state is for nodes only', 2],
  ])('%j is rejected with the reason', async (args, why, expected = 1) => {
    const { code, out } = await world.run('wait', ...args);
    expect(code).toBe(expected);
    expect(out.noted).toContain(why);
  });
});
