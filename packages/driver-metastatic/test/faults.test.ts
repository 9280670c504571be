/** Records that are damaged, unreadable or cannot be written: only their own backing node suffers. */

import { describe, expect, it } from '@jest/globals';
import { slotPlaceOf, type LaunchedInstance } from '@nodepool/core';
import { ONE, open, OWNER, THREE, TWO, withLabel, dataWith, type World } from './world.js';

/** Returns the id of the backing node that has the node. */
function backingOf({ driverData = null }: LaunchedInstance): string {
  return slotPlaceOf({ driver_data: driverData })?.backingNode ?? '';
}

async function end(world: World, id: string): Promise<void> {
  await world.provider.cleanUp(id, id);
  world.backing.deleted(id);
}

describe('damaged data of a backing node', () => {
  const owner = JSON.stringify(OWNER);
  it.each([
    ['is empty', null],
    ['is an empty text', ''],
    ['is cut off', `{"owner": ${owner}, "la`],
    ['is no JSON text', { owner: OWNER }],
    ['names another owner', dataWith({ owner: 'NodePool:metastatic:other' })],
    ['has no number of slots', `{"owner": ${owner}, "label": "small", "slots": "4"}`],
    ['has no readable slots', `{"owner": ${owner}, "label": "small", "slots": 4, "used": {"0": 7}}`],
  ])('that %s: its nodes stay, it gets no others, and is released with the last one', async (_, text) => {
    const world = await open();
    const { backing, launch, pass, provider } = world;
    const id = backingOf(await launch(ONE));
    backing.overwrite(id, text);
    await pass(1000);
    expect(await world.listed()).toMatchObject([{ externalId: ONE, ready: true }]);
    const second = await launch(TWO);
    expect(backingOf(second)).not.toBe(id);
    await pass(60_000);
    expect(backing.released).toEqual([]);
    await end(world, ONE);
    await pass(1000);
    expect(backing.released).toEqual([{ id, userData: text }]);
    expect(backing.nodes().map((node) => node.id)).toEqual([backingOf(second)]);
    expect(world.warnings()).toEqual([expect.stringContaining('gets no further nodes')]);
    await provider.stop();
  });

  it('delays its release until each launch that may have an unrecorded slot has ended', async () => {
    const world = await open();
    const { backing, pass, provider } = world;
    backing.launching({ id: TWO, provider: 'meta', pool: 'main', type: ['small'] });
    const { id } = backing.add(OWNER, { type: ['large'], user_data: '{"owner": 1' });
    // The launch of another launcher counts as one without a slot: other backing nodes come and go.
    const isReleased = (): boolean => backing.released.some((each) => each.id === id);
    await pass(300_000);
    expect(isReleased()).toBe(false);
    backing.launched(TWO, { externalId: TWO, slot: 2, driverData: { backing_node: id, slot: 2 } });
    await pass(300_000);
    expect(isReleased()).toBe(false);
    await end(world, TWO);
    await pass(1000);
    expect(isReleased()).toBe(true);
    await provider.stop();
  });
});

describe('a backing node that cannot be written', () => {
  it('delays neither launches nor the release of another one', async () => {
    const world = await open(withLabel({ 'max-parallel-jobs': 2, 'grace-time': 10 }));
    const { backing, launch, pass, provider } = world;
    const broken = backingOf(await launch(ONE));
    backing.setBroken(broken, true);
    const other = backingOf(await launch(TWO));
    expect(other).not.toBe(broken);
    await end(world, TWO);
    await pass(15_000);
    expect(backing.released.map(({ id }) => id)).toEqual([other]);
    expect(world.warnings()).toHaveLength(1);
    await provider.stop();
  });

  it('is written after the end of the trouble', async () => {
    const world = await open();
    const { backing, launch, pass, provider } = world;
    const id = backingOf(await launch(ONE));
    backing.setBroken(id, true);
    const freed = provider.beginCleanUp(ONE, ONE);
    await pass(200_000);
    expect(world.used()).toEqual([[ONE]]);
    backing.setBroken(id, false);
    await pass(60_000);
    await provider.end(freed);
    backing.deleted(ONE);
    expect(world.used()).toEqual([[]]);
    await provider.stop();
  });

  it('is replaced by another one if it cannot be taken over', async () => {
    const world = await open();
    const { backing, launch, provider } = world;
    backing.unadoptable.add('9000000002');
    await launch(ONE);
    expect(backing.requested).toHaveLength(2);
    expect(world.warnings()).toEqual([expect.stringContaining('could not be taken over')]);
    await provider.stop();
  });
});

describe('an outage of all records', () => {
  it('costs no backing node: afterwards, the launches take the free slots', async () => {
    const world = await open();
    const { backing, launch, pass, provider } = world;
    const id = backingOf(await launch(ONE));
    backing.isDown = true;
    backing.launching({ id: TWO, provider: 'meta', pool: 'main', type: ['small'] });
    const second = provider.begin(TWO);
    await pass(30_000);
    backing.isDown = false;
    expect(backingOf(await provider.end(second))).toBe(id);
    expect(backing.requested).toHaveLength(1);
    expect(world.warnings()).not.toContainEqual(expect.stringContaining('could not be written'));
    await provider.stop();
  });

  it('that is short costs no backing node, either', async () => {
    const world = await open();
    const { backing, launch, pass, provider } = world;
    const id = backingOf(await launch(ONE));
    backing.setBroken(id, true);
    backing.launching({ id: TWO, provider: 'meta', pool: 'main', type: ['small'] });
    const second = provider.begin(TWO);
    await pass(500);
    backing.setBroken(id, false);
    expect(backingOf(await provider.end(second))).toBe(id);
    expect(backing.requested).toHaveLength(1);
    await provider.stop();
  });
});

describe('a backing node whose lock cannot be read', () => {
  it('is not lost: its nodes stay, it gets no others, and the plan of requests goes on', async () => {
    const world = await open(withLabel({ 'grace-time': 10 }));
    const { backing, launch, pass, provider } = world;
    const id = backingOf(await launch(ONE));
    backing.setUnverified(id, 'its lock cannot be read');
    const second = await launch(TWO);
    expect(backingOf(second)).not.toBe(id);
    expect(await world.listed()).toMatchObject([
      { externalId: ONE, ready: true },
      { externalId: TWO, ready: true },
    ]);
    const freed = provider.beginCleanUp(ONE, ONE);
    await pass(60_000);
    expect(backing.released).toEqual([]);
    backing.setUnverified(id, undefined);
    await provider.end(freed);
    backing.deleted(ONE);
    await launch(THREE);
    await pass(60_000);
    expect(backing.released).toHaveLength(1);
    await provider.stop();
  });
});
