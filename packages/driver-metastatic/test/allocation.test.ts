/** Slots, attempts and backing nodes through the driver's provider. */

import { describe, expect, it } from '@jest/globals';
import { slotPlaceOf, type JsonObject } from '@nodepool/core';
import { instanceTags } from '@nodepool/driver-kit';
import { slots } from './sections.js';
import { dataWith, ONE, open, OWNER, THREE, TWO, withLabel } from './world.js';

describe('launch attempts', () => {
  it('of an interrupted launch have one slot', async () => {
    const { provider, launch, used } = await open();
    await launch(ONE, 'attempt-1');
    const tags = instanceTags(provider.config, ONE, 'attempt-1');
    const again = await provider.launch(ONE, { tags, saved: { state: 'interrupted' } });
    expect(again.slot).toBe(0);
    expect(used()).toEqual([[ONE]]);
    await provider.stop();
  });

  it('fail as not applied after an interruption before the slot was assigned', async () => {
    const { provider, backing } = await open();
    backing.launching({ id: ONE, provider: 'meta', pool: 'main', type: ['small'] });
    const error = await provider.failedLaunch(ONE, { saved: { state: 'interrupted' } });
    expect(error).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    await provider.stop();
  });

  it('of other nodes survive a deletion by tags', async () => {
    const { provider, launch, used } = await open();
    await launch(ONE, 'attempt-1');
    await launch(TWO, 'attempt-1');
    await provider.cleanUp(null, ONE, { launchAttempt: 'attempt-2' });
    expect(used()).toEqual([[ONE, TWO]]);
    await provider.cleanUp(null, ONE, { launchAttempt: 'attempt-1' });
    expect(used()).toEqual([[TWO]]);
    await provider.stop();
  });

  it('have their own slot only: a deletion of an earlier attempt leaves that of the next one', async () => {
    const { provider, launch, used } = await open();
    await launch(ONE, 'attempt-2');
    await provider.cleanUp(ONE, '0000000009', { launchAttempt: 'attempt-1' });
    expect(used()).toEqual([[ONE]]);
    await provider.stop();
  });
});

describe('records of the Python Nodepool', () => {
  it('are read: a slot that only its node names is in use, and the data is extended', async () => {
    const { provider, launch, backing } = await open(slots, (world) => {
      const node = world.backing.add(OWNER, {
        interface_ip: 'old.test',
        created_time: world.seconds(),
        user_data: JSON.stringify({ owner: OWNER, label: 'small', slots: 4, failed: false, launched: world.seconds() }),
      });
      const data = { metadata: {}, backing_node: node.id, slot: 0, node: TWO };
      world.backing.launching({
        id: TWO,
        provider: 'meta',
        pool: 'main',
        state: 'in-use',
        external_id: TWO,
        driver_data: data,
      });
    });
    const instance = await launch(ONE);
    expect(instance).toMatchObject({ interfaceIp: 'old.test', slot: 1, externalId: ONE });
    expect(backing.requested).toEqual([]);
    const [node] = backing.nodes();
    expect(JSON.parse(node?.user_data as string)).toMatchObject({
      owner: OWNER,
      label: 'small',
      slots: 4,
      failed: false,
    });
    await provider.stop();
  });

  it('without the time of the launch do not count as old', async () => {
    const { provider, launch, backing } = await open(withLabel({ 'max-age': 3600 }), (world) => {
      world.backing.add(OWNER, {
        created_time: world.seconds() - 60,
        user_data: JSON.stringify({ owner: OWNER, label: 'small', slots: 4, failed: false }),
      });
    });
    await launch(ONE);
    expect(backing.requested).toEqual([]);
    await provider.stop();
  });

  it('of a metastatic node have the fields that the other launcher writes', async () => {
    const { provider, launch } = await open();
    const { driverData = null, externalId, slot } = await launch(ONE);
    const backingNode = slotPlaceOf({ driver_data: driverData })?.backingNode;
    expect(externalId).toBe(ONE);
    expect(driverData).toEqual({
      backing_node: backingNode,
      slot,
      node: ONE,
      metadata: { nodepool_node_id: ONE, nodepool_pool_name: 'main', nodepool_provider_name: 'meta' },
    });
    await provider.stop();
  });
});

describe('times of a backing node', () => {
  it('released after the grace-time and the min-retention-time', async () => {
    const { provider, launch, backing, pass } = await open(withLabel({ 'min-retention-time': 100 }));
    const instance = await launch(ONE);
    await provider.cleanUp(instance.externalId, ONE);
    backing.deleted(ONE);
    await pass(90_000);
    expect(backing.released).toEqual([]);
    await pass(11_000);
    expect(backing.released).toHaveLength(1);
    await provider.stop();
  });

  it('gets no further nodes from its max-age on, and is released with its last node', async () => {
    const { provider, launch, backing, pass } = await open(withLabel({ 'max-age': 100 }));
    const first = await launch(ONE);
    await pass(101_000);
    expect(backing.released).toEqual([]);
    const second = await launch(TWO);
    expect(second.interfaceIp).not.toBe(first.interfaceIp);
    await provider.cleanUp(first.externalId, ONE);
    backing.deleted(ONE);
    await pass(1000);
    expect(backing.released).toHaveLength(1);
    await provider.stop();
  });

  it('of a label that is not configured any more end at once, without nodes', async () => {
    const { provider, backing, pass } = await open(slots, (world) => {
      world.backing.add(OWNER, { user_data: dataWith({ label: 'gone' }) });
    });
    await pass(100);
    expect(backing.released).toHaveLength(1);
    await provider.stop();
  });

  it('end at once if another program has set it to another state', async () => {
    for (const state of ['used', 'deleting'] as const) {
      const { provider, backing, pass } = await open(slots, (world) => {
        const used = new Map([[0, { node: ONE, attempt: 'a', pool: 'main', installation: null }]]);
        world.backing.launching({ id: ONE, provider: 'meta', pool: 'main', state: 'in-use' });
        world.backing.add(OWNER, { state, user_data: dataWith({ used }) });
      });
      await pass(100);
      expect(backing.released).toHaveLength(1);
      await provider.stop();
    }
  });

  it('are not ended by a launcher that lacks the label, while another one has it', async () => {
    const { provider, backing, pass } = await open(slots, (world) => {
      world.backing.served.add('theirs');
      world.backing.add(OWNER, { user_data: dataWith({ label: 'theirs' }) });
    });
    await pass(3_600_000);
    expect(backing.released).toEqual([]);
    await provider.stop();
  });

  it('do not end while an operator holds it', async () => {
    const { provider, backing, pass } = await open(slots, (world) => {
      world.backing.add(OWNER, { state: 'hold', user_data: dataWith() });
    });
    await pass(3_600_000);
    expect(backing.released).toEqual([]);
    await provider.stop();
  });
});

describe('a backing node that an operator holds', () => {
  it('gets no further nodes and is not released; the slots of its nodes become free', async () => {
    const { provider, launch, backing, pass, used } = await open(withLabel({}), (world) => {
      const present = new Map([[0, { node: TWO, attempt: null, pool: 'main', installation: null }]]);
      world.backing.launching({ id: TWO, provider: 'meta', pool: 'main', state: 'in-use', external_id: TWO });
      world.backing.add(OWNER, { interface_ip: 'held.test', state: 'hold', user_data: dataWith({ used: present }) });
    });
    expect((await launch(ONE)).interfaceIp).not.toBe('held.test');
    await provider.cleanUp(TWO, TWO);
    backing.deleted(TWO);
    await pass(3_600_000);
    expect(backing.released).toEqual([]);
    expect(used()).toEqual([[], [ONE]]);
    await provider.stop();
  });
});

describe('the check of the login', () => {
  const section = withLabel({ 'host-key-checking': true });

  it('fails the backing node whose login does not answer; the next attempt has another one', async () => {
    const { provider, launch, backing, logins, pass } = await open(section);
    const first = await launch(ONE);
    logins.setSilent(String(first.interfaceIp), true);
    const error = await provider.failedLaunch(TWO, { tags: instanceTags(provider.config, TWO, 'attempt-1') });
    expect(error.code).toBe('keyscan');
    await provider.cleanUp(TWO, TWO, { launchAttempt: 'attempt-1' });
    const second = await launch(THREE);
    expect(second.interfaceIp).not.toBe(first.interfaceIp);
    await provider.cleanUp(first.externalId, ONE);
    backing.deleted(ONE);
    await pass(1000);
    expect(backing.released).toHaveLength(1);
    await provider.stop();
  });

  it('fails a backing node that has other host keys than before', async () => {
    const { provider, backing, pass } = await open(section, (world) => {
      world.backing.add(OWNER, { interface_ip: 'old.test', host_keys: ['ssh-ed25519 OLD'], user_data: dataWith() });
    });
    backing.launching({ id: ONE, provider: 'meta', pool: 'main', type: ['small'] });
    const error = await provider.failedLaunch(ONE);
    expect(error.message).toContain('host keys');
    await provider.cleanUp(ONE, ONE);
    backing.deleted(ONE);
    await pass(1000);
    expect(backing.released[0]).toMatchObject({ userData: expect.stringContaining('host keys') });
    await provider.stop();
  });
});

describe('a free slot', () => {
  it.each([
    ['waits for an older launch of another launcher, for a limited time', ONE, TWO],
    ['does not wait for a newer launch of another launcher', THREE, TWO],
  ])('%s', async (_, others, own) => {
    const { provider, backing, pass, used } = await open(withLabel({ 'max-parallel-jobs': 1 }), (world) => {
      world.backing.add(OWNER, { user_data: dataWith({ slots: 1, launched: world.seconds() }) });
    });
    backing.bootMs = 60_000;
    for (const id of [others, own]) backing.launching({ id, provider: 'meta', pool: 'main', type: ['small'] });
    const launch = provider.begin(own);
    await pass(1000);
    const first = used()[0];
    await pass(5000);
    expect([first, used()[0]]).toEqual([others < own ? [] : [own], [own]]);
    await provider.end(launch);
    await provider.stop();
  });
});

describe('a label without backing nodes', () => {
  const twoLabels = (): JsonObject => {
    const label = { 'backing-label': 'large', 'max-parallel-jobs': 2, 'grace-time': 600 };
    const labels = [
      { name: 'small', ...label },
      { name: 'tiny', ...label },
    ];
    return { name: 'meta', driver: 'metastatic', pools: [{ name: 'main', labels }] };
  };

  it.each([
    ['gets the oldest one of another label after a minute, if its pools are full', 2, true],
    ['waits for its own, if its pools are not full', 3, false],
  ])('%s', async (_, capacity, yields) => {
    const { provider, backing, pass, used, seconds } = await open(twoLabels(), (world) => {
      for (const age of [100, 200]) {
        const data = { slots: 2, launched: world.seconds() - age, idle: world.seconds() };
        world.backing.add(OWNER, { user_data: dataWith(data), created_time: world.seconds() - age });
      }
      world.backing.capacities.set('large', capacity);
      world.backing.bootMs = 3_600_000;
    });
    const launching = (id: string, label: string): void =>
      backing.launching({ id, provider: 'meta', pool: 'main', type: [label], created_time: seconds() });
    launching(ONE, 'tiny');
    const waiting = provider.begin(ONE, { label: 'tiny' });
    await pass(50_000);
    expect(backing.released).toEqual([]);
    await pass(20_000);
    expect(backing.released).toHaveLength(yields ? 1 : 0);
    // The other backing node of that label still gets nodes.
    launching(TWO, 'small');
    await provider.end(provider.begin(TWO));
    expect(used().filter((nodes) => nodes.includes(TWO))).toHaveLength(1);
    waiting.catch(() => undefined);
    await provider.stop();
  });

  it('leaves another label its new backing node for a minute', async () => {
    const { provider, backing, pass, seconds } = await open(twoLabels(), (world) => {
      const node = { user_data: dataWith({ slots: 2, launched: world.seconds() - 30 }), state_time: world.seconds() };
      world.backing.add(OWNER, node);
      world.backing.capacities.set('large', 1);
      world.backing.bootMs = 3_600_000;
    });
    backing.launching({ id: ONE, provider: 'meta', pool: 'main', type: ['tiny'], created_time: seconds() - 100 });
    const waiting = provider.begin(ONE, { label: 'tiny' });
    waiting.catch(() => undefined);
    await pass(50_000);
    expect(backing.released).toEqual([]);
    await pass(20_000);
    expect(backing.released).toHaveLength(1);
    await provider.stop();
  });
});

it('slots are assigned in the order of the requests, whose ids begin with their priority', async () => {
  const { provider, backing, pass, used } = await open(withLabel({ 'max-parallel-jobs': 1 }), (world) => {
    world.backing.add(OWNER, { user_data: dataWith({ slots: 1, launched: world.seconds() }) });
  });
  backing.bootMs = 60_000;
  const requests = { [ONE]: '300-0000000001', [TWO]: '100-0000000002', [THREE]: null };
  for (const [id, request] of Object.entries(requests)) {
    backing.launching({ id, provider: 'meta', pool: 'main', type: ['small'], allocated_to: request });
  }
  const launches = [THREE, ONE, TWO].map((id) => provider.begin(id));
  await pass(5000);
  expect(used()[0]).toEqual([TWO]);
  for (const launch of launches) launch.catch(() => undefined);
  await provider.stop();
});

it('a pool has never more nodes at the same time than the pools of the backing labels allow', async () => {
  const { provider, backing } = await open(withLabel({ 'max-parallel-jobs': 2 }));
  const shortage = (count: number): string | undefined =>
    provider.provider.shortage?.('main', new Array<string>(count).fill('small'));
  expect(shortage(100)).toBeUndefined();
  backing.capacities.set('large', 2);
  expect([shortage(4), shortage(5)]).toEqual([
    undefined,
    'it needs 3 nodes of label large, whose pools have at most 2',
  ]);
  // The limit was lowered below the number of present nodes.
  for (let index = 0; index < 3; index += 1) backing.add(OWNER, { user_data: dataWith({ slots: 2 }) });
  expect([shortage(6), shortage(7)]).toEqual([
    undefined,
    'it needs 4 nodes of label large, whose pools have at most 3',
  ]);
  await provider.stop();
});

describe('requests', () => {
  it('that no launch needs any more are withdrawn', async () => {
    const { provider, backing, pass } = await open();
    backing.bootMs = 60_000;
    const controller = new AbortController();
    const launch = provider.begin(ONE, { signal: controller.signal });
    launch.catch(() => undefined);
    await pass(1000);
    expect(backing.requested).toHaveLength(1);
    controller.abort(new Error('the request was removed'));
    backing.deleted(ONE);
    await pass(1000);
    expect(backing.open(OWNER, 'meta').requests()).toEqual([]);
    await provider.stop();
  });

  it('are not changed by launchers with different numbers of slots in turn', async () => {
    const first = await open(withLabel({ 'max-parallel-jobs': 1 }));
    const second = await open(withLabel({ 'max-parallel-jobs': 4 }), undefined, first);
    const { backing } = first;
    backing.bootMs = 60_000;
    for (let index = 0; index < 10; index += 1) {
      backing.launching({ id: `000000010${index}`, provider: 'meta', pool: 'main', type: ['small'] });
    }
    await first.pass(5000);
    expect(backing.open(OWNER, 'meta').requests()).toHaveLength(backing.requested.length);
    await first.provider.stop();
    await second.provider.stop();
  });

  it('count the launches of other launchers', async () => {
    const { provider, backing, pass } = await open();
    for (const id of [ONE, TWO, THREE]) backing.launching({ id, provider: 'meta', pool: 'main', type: ['small'] });
    await pass(100);
    expect(backing.requested).toHaveLength(1);
    await provider.stop();
  });
});
