/** Starts and outcomes of image builds. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World, type Site } from './support/world.js';

const HOUR = 3_600_000;

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const site = (more: Site['images'][string] = {}): Site => ({
  images: { debian: more },
  providers: { cloud: { images: ['debian'] } },
});

describe('an image', () => {
  it('is built when no build exists, in the formats of its providers and its own', async () => {
    const { dib } = await world.builder(site({ formats: ['raw'] }));
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    expect(dib.jobs[0]?.args).toEqual([
      ...['-x', '-t', 'qcow2,raw', '--checksum', '--no-tmpfs', '--qemu-img-options', 'compat=0.10'],
      ...['-o', `/images/debian-${world.builds('debian')[0]?.id ?? ''}`, 'debian-minimal'],
    ]);
    expect(world.builds('debian')).toMatchObject([
      {
        state: 'ready',
        builder: 'builder-1.example.org',
        builder_id: 'id-of-builder-1',
        formats: 'qcow2,raw',
        username: 'zuul',
        python_path: 'auto',
        shell_type: null,
      },
    ]);
  });

  it('is rebuilt when it is older than its rebuild-age, not before', async () => {
    await world.builder(site({ rebuildAgeMs: 24 * HOUR }));
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    await world.after(23 * HOUR);
    expect(world.builds('debian')).toHaveLength(1);
    await world.after(2 * HOUR);
    expect(world.readyBuilds('debian')).toBe(2);
  });

  it('is rebuilt when a provider needs a format that it lacks', async () => {
    const { apply } = await world.builder(site());
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    apply({ ...site(), providers: { cloud: { images: ['debian'] }, other: { images: ['debian'], format: 'vhd' } } });
    await world.until('it is built again', () => world.readyBuilds('debian') === 2);
    expect(world.builds('debian').at(-1)).toMatchObject({ formats: 'qcow2,vhd' });
  });

  it('is named by its builder as long as it builds it', async () => {
    const { apply } = await world.builder(site());
    const { components } = await world.operator();
    const named = (): unknown => [...components.all('builder')].map(({ component }) => component.images);
    await world.after(1000);
    expect(named()).toEqual([['debian']]);
    apply({ ...site(), images: { debian: { pause: true }, base: { abstract: true }, fedora: { formats: ['raw'] } } });
    await world.after(1000);
    expect(named()).toEqual([['fedora']]);
  });

  it('is built when an operator requests it, which deletes the request', async () => {
    await world.builder(site());
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    const { images } = await world.operator();
    await world.during(images.requestBuild('debian'));
    await world.until('it is built again', () => world.readyBuilds('debian') === 2);
    expect(world.paths()).not.toContain('/nodepool/images/debian/request-build');
  });

  it('is built once more when the request came during a build', async () => {
    const { dib } = await world.builder(site());
    const { images } = await world.operator();
    await world.until('it is being built', () => dib.jobs.length === 1);
    await world.after(1000);
    await world.during(images.requestBuild('debian'));
    await world.until('it is built twice', () => world.readyBuilds('debian') === 2);
    expect(world.paths()).not.toContain('/nodepool/images/debian/request-build');
  });

  it.each([
    ['ahead', 60_000],
    ['behind', -60_000],
  ])('is built once per request if the clock of ZooKeeper is %s', async (_how, aheadMs) => {
    world.serverAheadMs = aheadMs;
    const { dib } = await world.builder(site());
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    const { images, zooKeeper } = await world.operator();
    await world.during(images.requestBuild('debian'));
    await world.until('it is being built', () => dib.jobs.length === 2);
    await world.after(HOUR);
    expect(dib.jobs.length).toBe(2);
    await world.during(images.requestBuild('debian'));
    await world.until('it is being built again', () => dib.jobs.length === 3);
    await world.during(zooKeeper.delete('/nodepool/images/debian/request-build'));
    await world.during(images.requestBuild('debian'));
    await world.after(HOUR);
    expect(dib.jobs.length).toBe(4);
  });

  it.each([
    ['the configuration pauses it', site({ pause: true })],
    ['it is abstract', site({ abstract: true })],
    ['it has no format', { images: { debian: {} }, providers: {} }],
  ])('is not built when %s', async (_why, paused) => {
    const { dib } = await world.builder(paused);
    await world.after(HOUR);
    expect(dib.jobs).toEqual([]);
  });

  it('is not built while an operator pauses it', async () => {
    const { images } = await world.operator();
    await world.during(images.pause('debian'));
    const { dib } = await world.builder(site());
    await world.after(HOUR);
    expect(dib.jobs).toEqual([]);
    await world.during(images.unpause('debian'));
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
  });

  it('is built after an operator has unpaused it, if a build was requested meanwhile', async () => {
    const { dib } = await world.builder(site());
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    const { images } = await world.operator();
    await world.during(images.pause('debian'));
    await world.during(images.requestBuild('debian'));
    await world.after(HOUR);
    expect(dib.jobs).toHaveLength(1);
    await world.during(images.unpause('debian'));
    await world.until('it is built again', () => world.readyBuilds('debian') === 2);
    expect(world.paths()).not.toContain('/nodepool/images/debian/request-build');
  });

  it('is built by one of two builders', async () => {
    const one = await world.builder(site());
    const two = await world.builder(site());
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    await world.after(HOUR);
    expect(one.dib.jobs.length + two.dib.jobs.length).toBe(1);
  });
});

describe('a failed build', () => {
  it.each(['fails', 'hangs', 'no-file', 'half', 'full'] as const)(
    'with cause "%s" leaves neither files nor record, and is retried later',
    async (ending) => {
      let first = true;
      const { dib, machine } = await world.builder({
        images: { debian: { formats: ['qcow2', 'raw'], buildTimeoutMs: HOUR } },
        providers: {},
      });
      dib.ending = () => (first ? ending : 'works');
      await world.until('it has failed', () => world.builds('debian').some(({ state }) => state === 'failed'));
      expect([...machine.disk.files]).toEqual([]);
      first = false;
      await world.until('the image is built', () => world.readyBuilds('debian') === 1);
      await world.after(1000);
      expect(world.builds('debian')).toHaveLength(1);
    },
  );

  it.each([
    ['fails', { reason: 'exit', message: 'it ended with status 100' }],
    ['hangs', { reason: 'timeout', message: 'it took too long' }],
    ['no-file', { reason: 'incomplete', message: 'no qcow2' }],
  ] as const)(
    'with cause "%s" leaves its time, reason and log, also once its record is deleted',
    async (ending, failure) => {
      const { dib } = await world.builder(site());
      dib.ending = () => ending;
      await world.until('it has failed', () => world.builds('debian').some(({ state }) => state === 'failed'));
      const [failed] = world.builds('debian');
      await world.until('its record is gone', () => !world.builds('debian').some(({ id }) => id === failed?.id));
      const { images } = await world.operator();
      expect(images.lastBuildFailure('debian')).toEqual({
        ...failure,
        time: expect.closeTo(Number(failed?.['state_time']), 0),
        build: failed?.id,
        builder: 'builder-1.example.org',
        log: `/logs/debian-${failed?.id ?? ''}.log`,
      });
    },
  );

  it('remains recorded after a later build succeeded', async () => {
    const { dib } = await world.builder(site());
    dib.ending = () => (dib.jobs.length === 1 ? 'fails' : 'works');
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
    const { images } = await world.operator();
    const failure = images.lastBuildFailure('debian');
    expect(failure?.build).toBe(dib.jobs[0]?.build);
    expect(failure?.time).toBeLessThan(Number(world.builds('debian').at(-1)?.['state_time']));
  });

  it('is retried with growing delays', async () => {
    const { dib } = await world.builder(site());
    dib.ending = () => 'fails';
    dib.durationMs = () => 1000;
    await world.after(12 * HOUR);
    expect(dib.jobs.length).toBeGreaterThan(12);
    expect(dib.jobs.length).toBeLessThan(30);
  });

  it('is retried at once when an operator requests a build', async () => {
    const { dib } = await world.builder(site());
    dib.ending = () => 'fails';
    await world.after(12 * HOUR);
    dib.ending = () => 'works';
    const { images } = await world.operator();
    await world.during(images.requestBuild('debian'));
    await world.after(120_000);
    expect(world.readyBuilds('debian')).toBe(1);
  });

  it('is retried with a delay also if the clock of ZooKeeper is ahead', async () => {
    world.serverAheadMs = 600_000;
    const { dib } = await world.builder(site());
    dib.ending = () => 'fails';
    dib.durationMs = () => 1000;
    const { images } = await world.operator();
    await world.until('it has failed', () => world.builds('debian').some(({ state }) => state === 'failed'));
    await world.during(images.requestBuild('debian'));
    await world.after(300_000);
    expect(dib.jobs.length).toBeLessThan(6);
  });

  it('is not started on a full disk, and continues when the disk has space again', async () => {
    const machine = world.machine();
    machine.disk.full = true;
    const { dib } = await world.builder(site(), machine);
    await world.after(HOUR);
    expect(dib.jobs).toEqual([]);
    expect(world.builds('debian')).toEqual([]);
    const { images } = await world.operator();
    expect(images.lastBuildFailure('debian')).toMatchObject({ reason: 'space', build: null, log: null });
    machine.disk.full = false;
    await world.until('the image is built', () => world.readyBuilds('debian') === 1);
  });

  it('with an expired session is stopped silently and cleaned up', async () => {
    const { dib, zk, machine } = await world.builder(site());
    await world.until('it is being built', () => dib.jobs.length === 1);
    await world.after(1000);
    world.server.expireSession(zk);
    await world.until('it is ended', () => dib.jobs[0]?.signal.aborted === true);
    const [lost] = dib.jobs;
    await world.until('it is built again', () => world.readyBuilds('debian') === 1);
    await world.until('what it left is gone', () => world.builds('debian').length === 1);
    expect(world.builds('debian')[0]?.id).not.toBe(lost?.build);
    expect([...machine.disk.files.values()].map(({ id }) => id)).toEqual([world.builds('debian')[0]?.id]);
    const { images } = await world.operator();
    expect(images.lastBuildFailure('debian')).toMatchObject({
      reason: 'interrupted',
      build: lost?.build,
      builder: 'builder-1.example.org',
      log: `/logs/debian-${lost?.build ?? ''}.log`,
    });
  });
});

describe('a stop', () => {
  it('waits for the running build and starts no other', async () => {
    const { dib, builder } = await world.builder({
      images: { debian: {}, fedora: {} },
      providers: { cloud: { images: ['debian', 'fedora'] } },
    });
    await world.until('one is being built', () => dib.jobs.length === 1);
    await world.after(1000);
    await world.during(builder.stop());
    expect(dib.jobs).toHaveLength(1);
    expect(world.readyBuilds('debian') + world.readyBuilds('fedora')).toBe(1);
  });

  it('aborts the running build when it is immediate', async () => {
    const { dib, builder, machine } = await world.builder(site());
    await world.until('it is being built', () => dib.jobs.length === 1);
    await world.after(1000);
    const stopped = builder.stop();
    builder.abort();
    await world.during(stopped);
    expect(world.builds('debian')).toMatchObject([{ state: 'failed' }]);
    expect([...machine.disk.files]).toEqual([]);
  });
});
