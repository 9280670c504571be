/** A launcher with a changed configuration: new and removed providers, launches in progress, and limits. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { REQUESTS, World, pool, provider } from './support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = (more = {}, poolMore = {}): ReturnType<typeof provider> =>
  provider('demo', [pool('main', ['small', 'large'], poolMore)], more);

describe('a changed configuration', () => {
  it('adds and removes providers without effect on nodes in use', async () => {
    const { launcher } = await world.launcher([demo()]);
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.during(launcher.apply(world.config([provider('next', [pool('main', ['other'])])])));
    const [node] = await world.fulfilled(await world.submit(['other']));
    expect(world.nodes().get(node!)?.provider).toBe('next');
    expect(world.nodes().get(taken.ids[0]!)?.state).toBe('in-use');
    await world.until('only the new pool is registered', () => world.records('/nodepool/components/pool').size === 1);
  });

  it('does not interrupt running launches', async () => {
    world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
    const { launcher } = await world.launcher([demo()]);
    const id = await world.submit(['small']);
    await world.until('the instance boots', () => world.cloud.existingInstances().length === 1);
    await world.during(launcher.apply(world.config([demo({}, { 'max-servers': 7 })])));
    await world.fulfilled(id);
    expect(world.cloud.existingInstances()).toHaveLength(1);
  });

  const oneLabel = (image: string, username: string, size: string, more = {}): ReturnType<typeof provider> => ({
    ...provider('demo', [{ ...pool('main', []), labels: [{ name: 'small', 'cloud-image': image, size }], ...more }]),
    'cloud-images': [{ name: image, username }],
    // Creations wait for their turn.
    rate: 0.2,
  });
  const ofNodes = (): JsonObject[] =>
    [...world.nodes().values()].map(({ external_id: id, image_id, username, resources }) => {
      const image = world.cloud.existingInstances().find((each) => each.id === id)?.image;
      return { image: image ?? null, image_id: image_id ?? null, username: username ?? null, resources: resources! };
    });

  it('of a restarted launcher applies to nodes whose instances are created afterwards', async () => {
    const former = await world.launcher([oneLabel('debian', 'root', 'large')]);
    const ids = await world.submitEach(3, ['small']);
    await world.until('the first instance exists', () => world.cloud.existingInstances().length === 1);
    await former.stop();
    await world.launcher([oneLabel('fedora', 'ci', 'small')]);
    for (const id of ids) await world.fulfilled(id);
    const small = { instances: 1, cores: 1, ram: 1024 };
    expect(ofNodes()).toEqual([
      { image: 'debian', image_id: 'debian', username: 'root', resources: { instances: 1, cores: 8, ram: 16_384 } },
      { image: 'fedora', image_id: 'fedora', username: 'ci', resources: small },
      { image: 'fedora', image_id: 'fedora', username: 'ci', resources: small },
    ]);
  });

  it.each([
    ['is that of the present configuration, if the image is the same', 'debian', { username: 'ci', port: 2222 }],
    ['is that of the former image, if the label has another one', 'fedora', { username: 'root', port: 22 }],
  ])('of a restarted launcher: the login of an instance that boots %s', async (_, image, login) => {
    world.cloud.configure({ bootTimeMs: [20_000, 20_000] });
    const scanned: number[] = [];
    world.scanner = {
      scan: ({ port }) => {
        scanned.push(port);
        return Promise.resolve(['ssh-ed25519 AAAA']);
      },
    };
    const scan = { 'host-key-checking': true };
    const one = (name: string, username: string, port: number): ReturnType<typeof provider> => ({
      ...provider('demo', [
        { ...pool('main', []), labels: [{ name: 'small', 'cloud-image': name, size: 'small' }], ...scan },
      ]),
      'cloud-images': [{ name, username, 'connection-port': port }],
    });
    const former = await world.launcher([one('debian', 'root', 22)]);
    const id = await world.submit(['small']);
    await world.until('the instance boots', () => world.cloud.existingInstances().length === 1);
    await world.clock.advance(5000);
    await former.stop();
    await world.launcher([one(image, 'ci', 2222)]);
    const [node] = await world.fulfilled(id);
    expect(scanned).toEqual([login.port]);
    expect(world.nodes().get(node!)).toMatchObject({
      username: login.username,
      connection_port: login.port,
      image_id: 'debian',
    });
  });

  it('of a restarted launcher continues requests in another pool if their pool has lost a label', async () => {
    world.cloud.configure({ bootTimeMs: [20_000, 20_000] });
    const pools = (main: string[], other: string[]): ReturnType<typeof provider> =>
      provider('demo', [pool('main', main), pool('other', other)]);
    const former = await world.launcher([pools(['small', 'large'], ['other'])]);
    const id = await world.submit(['small', 'large']);
    await world.until('the instances boot', () => world.cloud.existingInstances().length === 2);
    await former.stop();
    await world.launcher([pools(['large'], ['small', 'large'])]);
    const appliedAt = world.clock.monotonic();
    const nodes = await world.fulfilled(id);
    expect(world.clock.monotonic() - appliedAt).toBeLessThan(60_000);
    expect(nodes.map((node) => world.nodes().get(node)?.pool)).toEqual(['other', 'other']);
    await world.until('the other nodes are deleted', () => world.nodes().size === 2);
    expect(world.cloud.existingInstances()).toHaveLength(2);
  });

  it('of a restarted launcher does not let launches exceed a limit that their label now needs more of', async () => {
    const limit = { 'max-cores': 16 };
    const former = await world.launcher([oneLabel('debian', 'root', 'small', limit)]);
    await world.submitEach(4, ['small']);
    await world.until('the first instance exists', () => world.cloud.existingInstances().length === 1);
    await former.stop();
    await world.launcher([oneLabel('debian', 'root', 'large', limit)]);
    await world.clock.advance(300_000);
    const cores = world.cloud.existingInstances().reduce((sum, instance) => sum + instance.cores, 0);
    expect(cores).toBe(9);
  });

  it.each([0, 1, 2, 3])(
    'starts nothing under the previous limits (change after write %i of an acceptance)',
    async (after) => {
      await world.end();
      world = new World(1, () => 5);
      const { launcher } = await world.launcher([demo()]);
      let writes = 0;
      let applied: Promise<void> | undefined;
      let isApplied = false;
      const begun = new Map<string, string>();
      world.server.onCommit(() => {
        for (const [node, { state }] of world.nodes()) {
          if (state === 'building' && !begun.has(node)) begun.set(node, isApplied ? 'late' : 'in time');
        }
        if (world.records(REQUESTS).size === 0) return;
        writes += 1;
        if (applied !== undefined || writes <= after) return;
        applied = launcher.apply(world.config([demo({}, { 'max-servers': 0 })])).then(() => void (isApplied = true));
      });
      await world.submit(['small']);
      await world.until('the configuration is applied', () => isApplied);
      await world.clock.advance(10_000);
      expect([...begun.values()]).not.toContain('late');
    },
  );
});
