/** Every type of watch against every type of change, including changes missed during a lost connection. */

import { describe, expect, it } from '@jest/globals';
import { OPEN_ACL, type WatchEvent, type ZooKeeper } from '../../src/index.js';
import {
  bytes,
  Collector,
  EventLog,
  outcomeOf,
  type Harness,
  type PlainHarness,
  type PlainZooKeeper,
} from './harness.js';

/** All changes are at the znode `a`, which may have a child `a/child`. */
interface Step {
  readonly name: string;
  run(zk: PlainZooKeeper, path: string): Promise<unknown>;
}

const CHANGES = {
  create: { name: 'its creation', run: (zk, path) => zk.create(path) },
  set: { name: 'a change of its data', run: (zk, path) => zk.set(path, bytes('new')) },
  sameData: { name: 'the same data once more', run: (zk, path) => zk.set(path, bytes('old')) },
  delete: { name: 'its deletion', run: (zk, path) => zk.delete(path) },
  setAcl: { name: 'another access control list', run: (zk, path) => zk.setAcl(path, OPEN_ACL) },
  createChild: { name: 'a new child', run: (zk, path) => zk.create(`${path}/new`) },
  setChild: { name: 'a change of a child', run: (zk, path) => zk.set(`${path}/child`, bytes('new')) },
  deleteChild: { name: 'the deletion of a child', run: (zk, path) => zk.delete(`${path}/child`) },
  createGrandchild: { name: 'a new grandchild', run: (zk, path) => zk.create(`${path}/child/new`) },
  failedSet: {
    name: 'a refused change',
    run: (zk, path) => outcomeOf(zk.set(path, bytes('new'), { version: 99 })),
  },
  failedDelete: { name: 'a refused deletion', run: (zk, path) => outcomeOf(zk.delete(path, { version: 99 })) },
  sibling: { name: 'a znode beside it', run: (zk, path) => zk.create(`${path}-beside`) },
  read: { name: 'reads', run: (zk, path) => Promise.all([zk.get(path), zk.children(path), zk.getAcl(path)]) },
} as const satisfies Record<string, Step>;

type ChangeName = keyof typeof CHANGES;

type OneShot = 'get' | 'exists' | 'children' | 'exists of nothing';

/** Znodes that exist before the change, in addition to `a`. */
const NEEDS_CHILD: ReadonlySet<ChangeName> = new Set(['setChild', 'deleteChild', 'createGrandchild']);

function setWatch(
  zk: PlainZooKeeper,
  kind: OneShot,
  path: string,
  watch: (event: WatchEvent) => void,
): Promise<unknown> {
  switch (kind) {
    case 'get':
      return zk.get(path, { watch });
    case 'children':
      return zk.children(path, { watch });
    case 'exists':
    case 'exists of nothing':
      return zk.exists(path, { watch });
  }
}

/** Creates the znodes that the change needs. */
async function prepare(zk: PlainZooKeeper, change: ChangeName, path: string): Promise<void> {
  if (change === 'create') return;
  await zk.create(path, bytes('old'));
  if (NEEDS_CHILD.has(change)) await zk.create(`${path}/child`);
}

/** Events of a one-shot watch for each change; none where no event is listed. */
const EXPECTED_ONCE: Readonly<Record<OneShot, Partial<Record<ChangeName, WatchEvent['type']>>>> = {
  get: { set: 'changed', sameData: 'changed', delete: 'deleted' },
  exists: { set: 'changed', sameData: 'changed', delete: 'deleted' },
  children: { delete: 'deleted', createChild: 'children', deleteChild: 'children' },
  'exists of nothing': { create: 'created' },
};

const changesFor = (kind: OneShot): readonly ChangeName[] => {
  const names = Object.keys(CHANGES) as ChangeName[];
  return names.filter((name) => (name === 'create') === (kind === 'exists of nothing'));
};

const ONE_SHOT_CASES = (Object.keys(EXPECTED_ONCE) as OneShot[]).flatMap((kind) =>
  changesFor(kind).map((change) => ({
    kind,
    change,
    trigger: CHANGES[change].name,
    expected: EXPECTED_ONCE[kind][change] ?? 'nothing',
  })),
);

export function describeOneShotMatrix(harness: PlainHarness): void {
  describe('a one-shot watch', () => {
    it.each(ONE_SHOT_CASES)('set by $kind gets $expected for $trigger', async ({ kind, change, expected }) => {
      const path = harness.path('a');
      await prepare(harness.zk, change, path);
      const log = new Collector<string>();
      await setWatch(harness.zk, kind, path, (event) => log.add(`${event.type} ${event.path}`));
      await CHANGES[change].run(harness.zk, path);
      // An answer arrives after the events of the changes that it reflects.
      await harness.zk.exists(path);
      expect(log.items).toEqual(expected === 'nothing' ? [] : [`${expected} ${path}`]);
    });
  });
}

/** Events of a one-shot watch after a reconnection, for changes during the lost connection. */
export function describeMissedEvents(harness: Harness): void {
  describe('a one-shot watch whose client had no connection', () => {
    it.each(ONE_SHOT_CASES)('set by $kind gets $expected for $trigger', async ({ kind, change, expected }) => {
      const path = harness.path('a');
      await prepare(harness.zk, change, path);
      const client = await harness.client();
      const log = new Collector<string>();
      await setWatch(client, kind, path, (event) => log.add(`${event.type} ${event.path}`));
      await harness.whileIsolated(client, () => CHANGES[change].run(harness.zk, path));
      await client.exists(path);
      expect(log.items).toEqual(expected === 'nothing' ? [] : [`${expected} ${path}`]);
    });

    it.each([
      ['get', 'deleted'],
      ['exists', 'deleted'],
      ['children', 'deleted'],
    ] as const)('set by %s gets, for a deletion after other changes, %s', async (kind, expected) => {
      const path = harness.path('a');
      await harness.zk.create(path);
      const client = await harness.client();
      const log = new Collector<string>();
      await setWatch(client, kind, path, (event) => log.add(event.type));
      await harness.whileIsolated(client, async () => {
        await harness.zk.set(path, bytes('1'));
        await harness.zk.create(`${path}/child`);
        await harness.zk.delete(`${path}/child`);
        await harness.zk.delete(path);
      });
      await client.exists(path);
      expect(log.items).toEqual([expected]);
    });

    it.each([
      ['get', 'changed'],
      ['exists', 'changed'],
    ] as const)('set by %s gets, for a recreated znode, %s', async (kind, expected) => {
      const path = harness.path('a');
      await harness.zk.create(path);
      const client = await harness.client();
      const log = new Collector<string>();
      await setWatch(client, kind, path, (event) => log.add(event.type));
      await harness.whileIsolated(client, async () => {
        await harness.zk.delete(path);
        await harness.zk.create(path);
      });
      await client.exists(path);
      expect(log.items).toEqual([expected]);
    });

    it('fires for a later change when no event was missed', async () => {
      const client = await harness.client();
      await harness.zk.create(harness.path('a'));
      const log = new Collector<string>();
      await client.get(harness.path('a'), { watch: (event) => log.add(event.type) });
      await harness.whileIsolated(client, async () => undefined);
      await harness.zk.set(harness.path('a'), bytes('1'));
      expect(await log.atLeast(1)).toEqual(['changed']);
    });
  });
}

/** Events of a persistent watch at `a`, as type and path relative to `a`. */
const PERSISTENT: Readonly<Record<'persistent' | 'persistent-recursive', Partial<Record<ChangeName, string[]>>>> = {
  persistent: {
    create: ['created '],
    set: ['changed '],
    sameData: ['changed '],
    delete: ['deleted '],
    createChild: ['children '],
    deleteChild: ['children '],
  },
  'persistent-recursive': {
    create: ['created '],
    set: ['changed '],
    sameData: ['changed '],
    delete: ['deleted '],
    createChild: ['created /new'],
    setChild: ['changed /child'],
    deleteChild: ['deleted /child'],
    createGrandchild: ['created /child/new'],
  },
};

const PERSISTENT_CASES = (Object.keys(PERSISTENT) as (keyof typeof PERSISTENT)[]).flatMap((mode) =>
  (Object.keys(CHANGES) as ChangeName[]).map((change) => ({
    mode,
    change,
    trigger: CHANGES[change].name,
    expected: PERSISTENT[mode][change] ?? [],
  })),
);

const follow = async (zk: ZooKeeper, path: string, mode: 'persistent' | 'persistent-recursive'): Promise<EventLog> => {
  const log = new EventLog();
  zk.watch(path, mode, log);
  await log.atLeast(1);
  return log;
};

export function describePersistentMatrix(harness: Harness): void {
  describe('a persistent watch', () => {
    it.each(PERSISTENT_CASES)('of mode $mode gets $expected for $trigger', async ({ mode, change, expected }) => {
      const path = harness.path('a');
      await prepare(harness.zk, change, path);
      const log = await follow(harness.zk, path, mode);
      await CHANGES[change].run(harness.zk, path);
      await harness.zk.exists(path);
      const events = expected.map((text) => text.replace(' ', ` ${path}`));
      expect(log.items).toEqual(['reset', ...events]);
    });

    it.each(['persistent', 'persistent-recursive'] as const)(
      'of mode %s gets the changes of every client',
      async (mode) => {
        const path = harness.path('a');
        await harness.zk.create(path);
        const log = await follow(harness.zk, path, mode);
        const other = await harness.client();
        for (const zk of [harness.zk, other, harness.zk]) await zk.set(path, bytes('x'));
        expect(await log.atLeast(4)).toEqual(['reset', ...Array<string>(3).fill(`changed ${path}`)]);
      },
    );

    it.each(['persistent', 'persistent-recursive'] as const)(
      'of mode %s gets no events of a failed transaction',
      async (mode) => {
        const path = harness.path('a');
        await harness.zk.create(path);
        const log = await follow(harness.zk, path, mode);
        const transaction = harness.zk.transaction([
          { type: 'set', path, data: bytes('x') },
          { type: 'create', path: `${path}/new` },
          { type: 'check', path, version: 99 },
        ]);
        expect(await outcomeOf(transaction)).toBe('bad-version');
        await harness.zk.exists(path);
        expect(log.items).toEqual(['reset']);
      },
    );

    it('at the root of the tree gets all events', async () => {
      const inside = await harness.client({ chroot: harness.root });
      const log = await follow(inside, '/', 'persistent-recursive');
      await inside.create('/a');
      await inside.create('/a/b');
      expect(log.items).toEqual(['reset', 'created /a', 'created /a/b']);
    });

    it('inside another one gets each event once, as does the other', async () => {
      await harness.zk.create(harness.path('a'));
      const outer = await follow(harness.zk, harness.root, 'persistent-recursive');
      const inner = await follow(harness.zk, harness.path('a'), 'persistent-recursive');
      await harness.zk.create(harness.path('a/b'));
      await harness.zk.create(harness.path('c'));
      expect(outer.items).toEqual(['reset', `created ${harness.path('a/b')}`, `created ${harness.path('c')}`]);
      expect(inner.items).toEqual(['reset', `created ${harness.path('a/b')}`]);
    });

    it('gets events of ephemerals that are deleted with their session', async () => {
      const owner = await harness.client();
      for (const name of ['e1', 'e2']) await owner.create(harness.path(name), undefined, { mode: 'ephemeral' });
      const log = await follow(harness.zk, harness.root, 'persistent-recursive');
      await owner.close();
      const events = (await log.atLeast(3)).slice(1);
      expect([...events].sort()).toEqual([`deleted ${harness.path('e1')}`, `deleted ${harness.path('e2')}`]);
    });

    it('gets later events after it was closed and set again', async () => {
      const first = new EventLog();
      const watch = harness.zk.watch(harness.root, 'persistent', first);
      await first.atLeast(1);
      watch.close();
      const second = await follow(harness.zk, harness.root, 'persistent');
      await harness.zk.create(harness.path('a'));
      expect([first.items, second.items]).toEqual([['reset'], ['reset', `children ${harness.root}`]]);
    });
  });
}
