/** The component registry. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import type { ZooKeeper } from '@nodepool/zookeeper';
import {
  describePool,
  SERVES_REQUESTS,
  type ComponentData,
  type ComponentHandle,
  type PoolComponentData,
  type Store,
} from '@nodepool/store';
import { Simulation, given } from '../simulation.js';

let simulation: Simulation;
let zooKeeper: ZooKeeper;
let store: Store;

beforeEach(async () => {
  simulation = new Simulation();
  zooKeeper = simulation.client();
  store = await simulation.store(zooKeeper);
});

afterEach(() => simulation.close());

const launcher: ComponentData = { hostname: 'host', kind: 'launcher', state: 'running', version: '1', model_api: 0 };
const pool: PoolComponentData = {
  ...launcher,
  kind: 'pool',
  id: 'host-PoolWorker.cloud-main-1',
  name: 'main',
  provider_name: 'cloud',
  supported_labels: ['small'],
  priority: 100,
  paused: false,
};

const poolZnodes = (): string[] => simulation.paths('/nodepool/components/pool/');

describe('a registered component', () => {
  it('is visible to all clients with all its fields', async () => {
    const whole: Required<PoolComponentData> = {
      ...pool,
      ...{ drivers: { example: '1.2.0' }, webapp: { host: 'host.example.org', port: 8005 }, images: ['debian'] },
      configuration: { fingerprint: 'f00d', providers: { cloud: 'cafe' }, since: 5 },
      ...{ unserved: { other: 'no driver' }, forecasts: { small: { from: 900, counts: [1, 2], lead: 60 } } },
      ...{ paused_labels: ['small'], unready_labels: { small: 'no image' }, max_servers: 5 },
      out_of_service: [{ machine: 'rack1:22', labels: ['small'], slots: 2, reason: 'no answer', since: 7 }],
      trouble: { state: 'degraded', cause: 'auth', reason: 'refused', since: 9 },
    };
    await simulation.run(store.components.register(whole).registered());
    const complete = await simulation.store();
    expect([...complete.components.pools()]).toEqual([whole]);
  });

  it('is visible to the client that registers it', async () => {
    const handle = store.components.register(pool);
    await simulation.run(handle.registered());
    const other = await simulation.store();
    expect([...other.components.pools()]).toEqual([pool]);
    expect([...store.components.pools()]).toEqual([pool]);
    expect([...store.components.all('launcher')]).toEqual([]);
    expect(poolZnodes()).toEqual(['/nodepool/components/pool/host0000000000']);
    expect(store.components.complete).toBe(true);
  });

  it('publishes its updates', async () => {
    const handle = store.components.register(pool);
    const changes: unknown[] = [];
    store.components.onChange(({ after }) => changes.push((after?.component as PoolComponentData | undefined)?.paused));
    await simulation.run(
      Promise.all([handle.update({ paused: true }), handle.update({ supported_labels: ['large'] })]),
    );
    expect(handle.component).toEqual({ ...pool, paused: true, supported_labels: ['large'] });
    expect(simulation.json(given(poolZnodes()[0]))).toEqual(handle.component);
    expect(changes.at(-1)).toBe(true);
  });

  it('is registered with its present fields in each new session', async () => {
    const handle = store.components.register(pool);
    await simulation.run(handle.registered());
    simulation.server.expireSession(zooKeeper);
    await simulation.run(handle.update({ paused: true }));
    await simulation.clock.advance(60_000);
    expect(poolZnodes()).toHaveLength(1);
    expect([...store.components.pools()]).toEqual([{ ...pool, paused: true }]);
  });

  it('is registered again after another client deletes it', async () => {
    const handle = store.components.register(pool);
    await simulation.run(handle.registered());
    await simulation.run(simulation.other.delete(given(poolZnodes()[0])));
    await simulation.settled();
    expect(poolZnodes()).toEqual(['/nodepool/components/pool/host0000000001']);
  });

  it.each(['before-applied', 'after-applied'] as const)(
    'is registered once when the connection is lost %s',
    async (when) => {
      simulation.server.loseNextWrite(zooKeeper, when);
      const handle = store.components.register(pool);
      await simulation.run(handle.registered());
      expect(poolZnodes()).toHaveLength(1);
      simulation.server.loseNextWrite(zooKeeper, when);
      await simulation.run(handle.update({ paused: true }));
      expect(simulation.json(given(poolZnodes()[0]))).toMatchObject({ paused: true });
    },
  );

  it('is registered once when the search for a creation of unknown outcome fails', async () => {
    const slow = simulation.client({ operationTimeoutMs: 500 });
    const other = await simulation.store(slow);
    simulation.server.loseNextWrite(slow, 'after-applied');
    const handle = other.components.register(pool);
    expect(await simulation.clock.runUntil(() => poolZnodes().length === 1, 100)).toBe(true);
    simulation.server.partition(slow, 'silent');
    await simulation.clock.advance(2000);
    simulation.server.heal(slow);
    await simulation.run(handle.registered());
    await simulation.clock.advance(10_000);
    expect(poolZnodes()).toHaveLength(1);
    await simulation.run(handle.close());
    expect(poolZnodes()).toEqual([]);
  });

  it('leaves no znode when it is closed while the outcome of its creation is unknown', async () => {
    const slow = simulation.client({ operationTimeoutMs: 500 });
    const other = await simulation.store(slow);
    simulation.server.loseNextWrite(slow, 'after-applied');
    const handle = other.components.register(pool);
    expect(await simulation.clock.runUntil(() => poolZnodes().length === 1, 100)).toBe(true);
    simulation.server.partition(slow, 'silent');
    const closed = handle.close();
    await simulation.clock.advance(2000);
    simulation.server.heal(slow);
    await simulation.run(closed);
    expect(poolZnodes()).toEqual([]);
  });

  it('does not delete a later component of the same name after a backup was restored', async () => {
    const backup = simulation.server.snapshot();
    const handle = store.components.register(pool);
    await simulation.run(handle.registered());
    const second = { ...pool, id: 'second' };
    simulation.server.restore(backup);
    // Both are sent with the next session, in which the names of znodes start again.
    const later = store.components.register(second);
    await simulation.run(Promise.all([handle.update({ paused: true }), later.registered()]));
    await simulation.clock.advance(60_000);
    expect(poolZnodes().map((path) => simulation.json(path))).toEqual([second, { ...pool, paused: true }]);
  });

  it('is independent of a second one of the same host', async () => {
    const handles = [store.components.register(pool), store.components.register({ ...pool, id: 'second' })];
    await simulation.run(Promise.all(handles.map((handle) => handle.registered())));
    expect([...store.components.pools()].map(({ id }) => id).sort()).toEqual([pool.id, 'second'].sort());
    await simulation.run(given(handles[0]).close());
    expect([...store.components.pools()].map(({ id }) => id)).toEqual(['second']);
  });

  it('is distinguished from a second one of the same host when both answers were lost', async () => {
    simulation.server.loseNextWrite(zooKeeper, 'after-applied');
    const handles = [pool, { ...pool, id: 'second' }].map((each) => store.components.register(each));
    await simulation.run(Promise.all(handles.map((handle) => handle.registered())));
    await simulation.clock.advance(60_000);
    expect([...store.components.pools()].map(({ id }) => id).sort()).toEqual([pool.id, 'second'].sort());
  });

  it('is not registered again after it is closed', async () => {
    const handle = store.components.register(launcher);
    await simulation.run(handle.registered());
    await simulation.run(handle.close());
    await simulation.run(handle.close());
    simulation.server.expireSession(zooKeeper);
    await simulation.clock.advance(60_000);
    expect([...store.components.all()]).toEqual([]);
    expect(simulation.paths('/nodepool/components/launcher/')).toEqual([]);
  });

  it('is closed only after its registration is undone, also a pending one', async () => {
    const handle = store.components.register(pool);
    await simulation.run(handle.close());
    const later: string[] = [];
    simulation.server.onCommit((changes) => later.push(...changes.map(({ path }) => path)));
    await simulation.clock.advance(60_000);
    expect(later.filter((path) => path.startsWith('/nodepool/components/pool/'))).toEqual([]);
    expect(poolZnodes()).toEqual([]);
  });

  it('stops waiting for registration at the deadline or on abort', async () => {
    simulation.server.stop();
    await simulation.settled();
    const handle = store.components.register(pool);
    await expect(simulation.run(handle.registered({ timeoutMs: 500 }))).rejects.toThrow(/not registered in time/);
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(simulation.run(handle.registered({ signal }))).rejects.toThrow('enough');
    simulation.server.start();
    await simulation.run(handle.registered());
    expect(poolZnodes()).toHaveLength(1);
  });
});

describe('an unreadable component', () => {
  it('is treated as absent', async () => {
    const register = (path: string, data: string): Promise<unknown> =>
      simulation.run(simulation.other.create(path, new TextEncoder().encode(data), { mode: 'ephemeral' }));
    await register('/nodepool/components/pool/other0000000000', '{"id": 5}');
    await register('/nodepool/components/launcher/other0000000000', JSON.stringify(launcher));
    await simulation.settled();
    expect([...store.components.all()]).toEqual([
      { path: '/nodepool/components/launcher/other0000000000', session: expect.any(BigInt), component: launcher },
    ]);
  });
});

it('contain exactly the open components after a time in which no creation was answered', async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = seededRandom(seed);
    const slow = new Simulation({ seed, latencyMs: () => Math.floor(random.next() * 6) });
    const client = slow.client({ operationTimeoutMs: 1500 });
    const { components } = await slow.store(client);
    slow.server.setLag(client, 2000);
    const handles: ComponentHandle<PoolComponentData>[] = [];
    for (let index = 0; index < 8; index += 1) {
      handles.push(components.register({ ...pool, id: `pool-${index}` }));
      await slow.clock.advance(Math.floor(random.next() * 500));
    }
    const closed = handles.filter((_, index) => index % 2 === 0).map((handle) => handle.close());
    await slow.clock.advance(Math.floor(random.next() * 4000));
    slow.server.setLag(client, 0);
    await slow.run(Promise.all([...closed, ...handles.map((handle) => handle.registered())]));
    await slow.settled();
    const paths = slow.paths('/nodepool/components/pool/');
    const ids = paths.map((path) => (slow.json(path) as PoolComponentData).id).sort();
    expect({ seed, ids }).toEqual({ seed, ids: ['pool-1', 'pool-3', 'pool-5', 'pool-7'] });
    await slow.close();
  }
});

describe('a component that another client deletes at the moment of a write', () => {
  let latencyMs: number;
  let slow: Simulation;

  beforeEach(() => {
    latencyMs = 1;
    slow = new Simulation({ latencyMs: () => latencyMs });
  });

  afterEach(() => slow.close());

  /** Deletes a znode, so that its deletion arrives together with the answer to the write that was just called. */
  const deleteWithAnswer = async (path: string): Promise<void> => {
    await slow.clock.advance(0);
    latencyMs = 50;
    await slow.clock.advance(1);
    latencyMs = 1;
    await slow.run(slow.other.delete(path));
    await slow.settled();
  };
  const registered = '/nodepool/components/pool/host0000000000';

  it('is registered again after its creation', async () => {
    const { components } = await slow.store();
    const handle = components.register(pool);
    await deleteWithAnswer(registered);
    await slow.run(handle.registered());
    expect(slow.paths('/nodepool/components/pool/')).toEqual(['/nodepool/components/pool/host0000000001']);
  });

  it('is registered again after an update', async () => {
    const { components } = await slow.store();
    const handle = components.register(pool);
    await slow.run(handle.registered());
    const updated = handle.update({ paused: true });
    await deleteWithAnswer(registered);
    await slow.run(updated);
    const [path, ...others] = slow.paths('/nodepool/components/pool/');
    expect(others).toEqual([]);
    expect(slow.json(given(path))).toEqual({ ...pool, paused: true });
  });
});

describe('a znode in the registry that no session owns', () => {
  const path = '/nodepool/components/pool/host0000000099';
  const data = (): Uint8Array => new TextEncoder().encode(JSON.stringify(pool));

  it('is no component, and is reported', async () => {
    await simulation.run(simulation.other.create(path, data()));
    await simulation.settled();
    for (const each of [store, await simulation.store()]) {
      expect([...each.components.all()]).toEqual([]);
      expect([...each.components.withoutSession()]).toEqual([path]);
    }
    await simulation.run(simulation.other.delete(path));
    await simulation.settled();
    expect([...store.components.withoutSession()]).toEqual([]);
  });

  it('does not hide the components of processes', async () => {
    await simulation.run(simulation.other.create(path, data()));
    await simulation.run(store.components.register(pool).registered());
    expect([...store.components.pools()]).toEqual([pool]);
    expect([...store.components.withoutSession()]).toEqual([path]);
  });
});

describe('the departed pools', () => {
  const departed = (): unknown[] => [...store.components.departedPools()].map(({ pool: { id }, left }) => [id, left]);

  it('are those that have left the registry, with the time, until they return with another id', async () => {
    const other = await simulation.store();
    const handle = other.components.register(pool);
    const stays = other.components.register({ ...pool, hostname: 'other', id: 'other-PoolWorker.cloud-main-2' });
    await simulation.run(Promise.all([handle.registered(), stays.registered()]));
    await simulation.settled();
    expect(departed()).toEqual([]);
    await simulation.run(handle.close());
    const left = simulation.clock.now();
    await simulation.settled();
    expect(departed()).toEqual([[pool.id, left]]);
    await simulation.clock.advance(60_000);
    expect(departed()).toEqual([[pool.id, left]]);
    await simulation.run(other.components.register({ ...pool, id: 'host-PoolWorker.cloud-main-3' }).registered());
    await simulation.settled();
    expect(departed()).toEqual([]);
  });

  it('of a launcher that has left as well come before those of one that runs without them', async () => {
    const running = await simulation.store();
    await simulation.run(running.components.register(launcher).registered());
    const gone = await simulation.store();
    const one = gone.components.register({ ...pool, hostname: 'gone', id: 'gone-PoolWorker.cloud-main-1' });
    const two = running.components.register(pool);
    await simulation.run(Promise.all([one.registered(), two.registered()]));
    await simulation.settled();
    const last = (name: string): unknown =>
      store.components.lastDeparted((each) => each.provider_name === name)?.pool.hostname;
    await simulation.run(two.close());
    await simulation.settled();
    expect([last('cloud'), last('other')]).toEqual(['host', undefined]);
    await simulation.run(one.close());
    await simulation.settled();
    expect(last('cloud')).toBe('gone');
    await simulation.run(running.components.register({ ...pool, name: 'second' }).close());
    await simulation.settled();
    expect(last('cloud')).toBe('gone');
  });

  it('are not those that are registered again before the former registration ends', async () => {
    const other = await simulation.store();
    const handle = other.components.register(pool);
    await simulation.run(handle.registered());
    const again = other.components.register({ ...pool, id: 'host-PoolWorker.cloud-main-2' });
    await simulation.run(again.registered());
    await simulation.settled();
    await simulation.run(handle.close());
    await simulation.settled();
    expect(departed()).toEqual([]);
  });
});

it('finds the launcher of a host with or without its domain', async () => {
  await simulation.run(store.components.register(launcher).registered());
  await simulation.settled();
  const hosts = ['host', 'host.example.org', 'host2', 'hos', 'example.org'];
  expect(hosts.filter((host) => store.components.hasLauncher(host))).toEqual(['host', 'host.example.org']);
});

describe('the description of a pool', () => {
  const says = (change: Partial<PoolComponentData>, labels?: readonly string[]): string =>
    describePool({ ...pool, state: 'running', paused: false, ...change }, labels);
  const trouble = { state: 'unreachable', reason: 'no answer', since: 1 } as const;

  it('names what keeps requests for a label away', () => {
    expect(says({ state: 'initializing' }, ['small'])).toBe('is initializing');
    const degraded = { ...trouble, state: 'degraded' } as const;
    expect(says({ state: 'initializing', trouble: degraded }, ['small'])).toBe('is initializing');
    const silent = { state: 'initializing', trouble } as const;
    expect(says(silent, ['small'])).toBe('launches no nodes; its provider is unreachable: no answer');
    expect(says({ unready_labels: { small: 'no image' } }, ['small'])).toBe('cannot serve it: no image');
    expect(says({ unready_labels: { small: 'no image' } }, ['other'])).toBe(SERVES_REQUESTS);
    expect(says({ trouble }, ['small'])).toBe('launches no nodes; its provider is unreachable: no answer');
    expect(says({ paused_labels: ['small'] }, ['small'])).toBe('cannot launch it at the moment');
    expect(says({ paused: true }, ['small'])).toBe('lets requests wait for capacity or a limit, or is drained');
    expect(says({}, ['small'])).toBe(SERVES_REQUESTS);
  });

  it('of a degraded provider concerns the labels that it cannot launch', () => {
    const degraded = { trouble: { ...trouble, state: 'degraded' }, paused_labels: ['small'] } as const;
    expect(says(degraded, ['small'])).toBe('launches not all of its nodes; its provider is degraded: no answer');
    expect(says(degraded, ['other'])).toBe(SERVES_REQUESTS);
    expect(says(degraded)).toBe('launches not all of its nodes; its provider is degraded: no answer');
  });
});
