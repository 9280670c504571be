/** Tests that static machines are handed out as the latest check found them, and to one request per slot. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { host, hostKeys, KEY, rack, ready, start, untilReady, world } from './support/static-world.js';
import { REQUESTS } from './support/world.js';

const NEW_KEY = 'ssh-ed25519 BBBB';

/** Calls `seen` with the record of the first node of each request that becomes fulfilled. */
function onFulfilled(seen: (node: JsonObject | undefined, request: string) => void): void {
  const known = new Set<string>();
  world.server.onCommit(() => {
    for (const [id, { state, nodes }] of world.records(REQUESTS)) {
      if (state !== 'fulfilled' || known.has(id)) continue;
      known.add(id);
      seen(world.nodes().get((nodes as string[])[0] ?? ''), id);
    }
  });
}

describe('a static machine whose host key has changed', () => {
  it('is handed out with the new key', async () => {
    const keys: unknown[] = [];
    await start(rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    onFulfilled((node) => keys.push(node?.host_keys));
    for (const key of [NEW_KEY, 'ssh-ed25519 CCCC', KEY]) {
      await world.clock.advance(10_000);
      hostKeys.set('192.0.2.1', [key]);
      const id = await world.served(['small']);
      await world.during(world.requestor.withdraw(id));
      await untilReady('192.0.2.1:22/0');
    }
    expect(keys).toEqual([[NEW_KEY], ['ssh-ed25519 CCCC'], [KEY]]);
  });

  it('is handed out with the new key if the check for another node has read it', async () => {
    const keys: unknown[] = [];
    await start(rack([host('192.0.2.1', ['small'], { 'max-parallel-jobs': 3 })]));
    await untilReady('192.0.2.1:22/0', '192.0.2.1:22/1', '192.0.2.1:22/2');
    onFulfilled((node) => keys.push(node?.host_keys));
    await world.clock.advance(10_000);
    hostKeys.set('192.0.2.1', [NEW_KEY]);
    const ids = await world.submitEach(3, ['small']);
    for (const id of ids) await world.fulfilled(id);
    expect(keys).toEqual([[NEW_KEY], [NEW_KEY], [NEW_KEY]]);
  });

  it('is not handed out if the configuration requires the former key', async () => {
    await start(rack([host('192.0.2.1', ['small'], { 'host-key': KEY })]));
    await untilReady('192.0.2.1:22/0');
    await world.clock.advance(10_000);
    hostKeys.set('192.0.2.1', [NEW_KEY]);
    const id = await world.submit(['small']);
    await world.clock.advance(10_000);
    expect(world.stateOf(id)).toBe('requested');
    hostKeys.set('192.0.2.1', [KEY]);
    await world.fulfilled(id);
  });
});

describe('a launcher of another implementation that registers a slot, too', () => {
  /** The node that a Python Nodepool would register for slot 0. */
  const theirs: JsonObject = {
    ...{ state: 'ready', state_time: 1, created_time: 1, provider: 'rack', pool: 'main', launcher: 'static driver' },
    ...{ type: ['small'], external_id: '192.0.2.1', hostname: '192.0.2.1', interface_ip: '192.0.2.1' },
    ...{ username: 'zuul', connection_port: 22, ssh_port: 22, connection_type: 'ssh', python_path: 'auto' },
    ...{ host_keys: [KEY], public_ipv4: '192.0.2.1', slot: 0, allocated_to: null, shell_type: null },
  };
  const create = async (zk: ZooKeeper, more: JsonObject = {}): Promise<string> => {
    const data = Buffer.from(JSON.stringify({ ...theirs, ...more }));
    const { path } = await zk.create('/nodepool/nodes/', data, { mode: 'persistent-sequential' });
    return path.slice('/nodepool/nodes/'.length);
  };

  it('does not get the same slot while a request uses it', async () => {
    await start(rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    const zk = world.server.connect();
    // Their request has their node.
    const twin = await world.during(create(zk, { state: 'in-use', allocated_to: '200-9' }));
    await world.during(zk.create(`/nodepool/nodes/${twin}/lock`));
    const contender = `/nodepool/nodes/${twin}/lock/${'a'.repeat(32)}__lock__0000000000`;
    await world.during(zk.create(contender, Buffer.alloc(0), { mode: 'ephemeral' }));
    const id = await world.submit(['small']);
    await world.clock.advance(60_000);
    expect(world.stateOf(id)).toBe('requested');
    // Its end frees the slot.
    await world.during(zk.delete(contender));
    await world.fulfilled(id);
    await world.during(zk.close());
  });

  it('does not hand out its node if a request of this one gets the same slot', async () => {
    await start(rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    const zk = world.server.connect();
    // Both nodes exist when the request is served.
    const [id, twin] = await world.during(Promise.all([world.requestor.submit(['small']), create(zk)]));
    const [node] = await world.fulfilled(id);
    const others = [...world.nodes()].filter(([other, { state }]) => other !== node && state === 'ready');
    expect(others).toEqual([]);
    expect(twin).toMatch(/^\d{10}$/);
    await world.during(zk.close());
  });

  it('gets three seconds to register the slot of a node that it has deleted', async () => {
    await start(rack([host('192.0.2.1', ['small'])]));
    await untilReady('192.0.2.1:22/0');
    const zk = world.server.connect();
    const [id = ''] = world.nodes().keys();
    await world.during(zk.delete(`/nodepool/nodes/${id}`));
    await world.clock.advance(2900);
    expect(world.nodes().size).toBe(0);
    await world.clock.advance(500);
    expect(ready()).toEqual(['192.0.2.1:22/0']);
    // The slot of a node that this launcher has deleted is registered at once.
    const request = await world.served(['small']);
    await world.giveBack(request);
    const returnedAt = world.clock.monotonic();
    await untilReady('192.0.2.1:22/0');
    expect(world.clock.monotonic() - returnedAt).toBeLessThan(3000);
    await world.during(zk.close());
  });
});
