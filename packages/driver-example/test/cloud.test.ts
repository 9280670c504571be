/** Behaviour and faults of the example cloud. */

import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { DEFAULT_SETTINGS } from '../src/cloud/settings.js';
import type { CloudInstance } from '../src/cloud/types.js';
import { cloudWith, failureOf, imageSpec, instanceSpec, pieces } from './helpers.js';

async function onlyState(list: Promise<{ items: readonly CloudInstance[] }>): Promise<string | undefined> {
  const { items } = await list;
  expect(items.length).toBeLessThanOrEqual(1);
  return items[0]?.state;
}

describe('an instance of the example cloud', () => {
  it('is building until its boot time has passed, then runs', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 10 });
    const { id, state } = await cloud.createInstance(instanceSpec());
    expect(state).toBe('building');
    await clock.advance(9_999);
    expect(cloud.existingInstances()).toMatchObject([{ id, state: 'building' }]);
    await clock.advance(1);
    expect(cloud.existingInstances()).toMatchObject([{ id, state: 'running' }]);
  });

  it('boots and is deleted immediately in a cloud without delays', async () => {
    const { cloud, clock } = cloudWith();
    const created = cloud.createInstance(instanceSpec());
    expect(created).toMatchObject({ state: 'running' });
    expect(cloud.deleteInstance((created as CloudInstance).id)).toMatchObject({ state: 'deleted' });
    expect(cloud.existingInstances()).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('uses no timers, even if there are a thousand instances', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': [1, 60], 'delete-time': 30, 'list-lag': 3 });
    for (let count = 0; count < 1000; count += 1) await cloud.createInstance(instanceSpec());
    for (const { id } of cloud.existingInstances().slice(0, 500)) await cloud.deleteInstance(id);
    expect(clock.pending).toBe(0);
    await clock.advance(60_000);
    expect(cloud.existingInstances()).toHaveLength(500);
  });

  it('has a boot time that depends on the seed', async () => {
    const bootTimes = async (seed: number): Promise<number[]> => {
      const { cloud, clock } = cloudWith({ 'boot-time': [5, 50] }, seed);
      for (let count = 0; count < 5; count += 1) await cloud.createInstance(instanceSpec());
      const times: number[] = [];
      for (let second = 1; second <= 50; second += 1) {
        await clock.advance(1000);
        times.push(cloud.existingInstances().filter(({ state }) => state === 'running').length);
      }
      return times;
    };
    const times = await bootTimes(7);
    expect(times[3]).toBe(0);
    expect(times[49]).toBe(5);
    expect(await bootTimes(7)).toEqual(times);
    expect(await bootTimes(8)).not.toEqual(times);
  });

  it('uses quota during its deletion, and then no longer exists', async () => {
    const { cloud, clock } = cloudWith({ 'delete-time': 5, quota: { instances: 1 } });
    const { id } = await cloud.createInstance(instanceSpec());
    expect(await cloud.deleteInstance(id)).toMatchObject({ id, state: 'deleting' });
    expect(await cloud.deleteInstance(id)).toMatchObject({ id, state: 'deleting' });
    expect(await failureOf(() => cloud.createInstance(instanceSpec()))).toMatchObject({ code: 'quota' });
    await clock.advance(5000);
    expect(await failureOf(() => cloud.deleteInstance(id))).toMatchObject({ code: 'not-found' });
    expect(cloud.usage()).toEqual({ instances: 0, cores: 0, ram: 0 });
    await cloud.createInstance(instanceSpec());
  });

  it('has unique addresses, which are reused after its deletion', async () => {
    const { cloud } = cloudWith();
    const first = await cloud.createInstance(instanceSpec());
    const second = await cloud.createInstance(instanceSpec());
    expect(second.publicIpv4).not.toBe(first.publicIpv4);
    expect(second.privateIpv4).not.toBe(first.privateIpv4);
    expect(second.publicIpv6).not.toBe(first.publicIpv6);
    await cloud.deleteInstance(first.id);
    const third = await cloud.createInstance(instanceSpec());
    expect(third.publicIpv4).toBe(first.publicIpv4);
    expect(third.id).not.toBe(first.id);
  });

  it('has its tags, and prints its events on its console', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 2 });
    const { id } = await cloud.createInstance(instanceSpec({ name: 'np-7', tags: { colour: 'red' } }));
    expect(await cloud.consoleOf(id)).not.toContain('login:');
    await clock.advance(2000);
    expect(await cloud.consoleOf(id)).toContain('np-7 login:');
    expect(cloud.existingInstances()[0]?.tags).toEqual({ colour: 'red' });
    expect(await failureOf(() => cloud.consoleOf('i-none'))).toMatchObject({ code: 'not-found' });
  });

  it('can be destroyed by a host failure', async () => {
    const { cloud } = cloudWith({ 'delete-time': 60 });
    const { id } = await cloud.createInstance(instanceSpec());
    expect(cloud.destroyInstance(id)).toBe(true);
    expect(cloud.existingInstances()).toEqual([]);
    expect(cloud.destroyInstance(id)).toBe(false);
  });
});

describe('the example cloud refuses', () => {
  it.each(['instances', 'cores', 'ram'] as const)(
    'more %s than the quota allows, and names the exceeded quota',
    async (resource) => {
      const { cloud } = cloudWith({ quota: { [resource]: { instances: 2, cores: 4, ram: 4096 }[resource] } });
      await cloud.createInstance(instanceSpec());
      await cloud.createInstance(instanceSpec());
      const failure = await failureOf(() => cloud.createInstance(instanceSpec()));
      expect(failure).toMatchObject({ code: 'quota', message: expect.stringContaining(resource) });
      expect(cloud.usage()).toEqual({ instances: 2, cores: 4, ram: 4096 });
    },
  );

  it('nonexistent zones, sizes and images, and names the existing ones', async () => {
    const { cloud } = cloudWith({ zones: ['a', 'b'], 'public-images': ['debian'] });
    expect(await failureOf(() => cloud.createInstance(instanceSpec({ zone: 'c' })))).toMatchObject({
      code: 'invalid',
      message: 'there is no zone c; zones: a, b',
    });
    expect(await failureOf(() => cloud.createInstance(instanceSpec({ size: 'huge' })))).toMatchObject({
      code: 'invalid',
      message: 'there is no size huge; sizes: small, medium, large',
    });
    expect(await failureOf(() => cloud.createInstance(instanceSpec({ image: 'plan9' })))).toMatchObject({
      code: 'invalid',
      message: 'there is no public image plan9; images: debian',
    });
    expect(cloud.existingInstances()).toEqual([]);
  });

  it('calls beyond its rate limit, until the limit allows them again', async () => {
    const { cloud, clock } = cloudWith({ 'rate-limit': 2 });
    await cloud.listInstances(null);
    await cloud.listInstances(null);
    const failure = await failureOf(() => cloud.listInstances(null));
    expect(failure).toMatchObject({ code: 'throttled', retryAfterSeconds: 1 });
    await clock.advance(1000);
    await cloud.listInstances(null);
    await cloud.listInstances(null);
    expect(await failureOf(() => cloud.listInstances(null))).toMatchObject({ code: 'throttled' });
  });
});

describe('sizes and zones', () => {
  it('determine the resources and the zone of an instance', async () => {
    const { cloud } = cloudWith({ zones: ['a', 'b'], sizes: [{ name: 'tiny', cores: 3, ram: 300 }] });
    const sized = await cloud.createInstance(instanceSpec({ size: 'tiny', zone: 'b' }));
    expect(sized).toMatchObject({ cores: 3, ram: 300, zone: 'b' });
    expect((await cloud.createInstance(instanceSpec())).zone).toBe('a');
    expect(await cloud.describe()).toEqual({
      publicImages: null,
      zones: ['a', 'b'],
      sizes: [{ name: 'tiny', cores: 3, ram: 300 }],
      quota: { instances: -1, cores: -1, ram: -1 },
      reusesIds: false,
    });
  });
});

describe('listings', () => {
  it('have pages in the order of creation, also while instances are created and deleted', async () => {
    const { cloud } = cloudWith({ 'page-size': 3 });
    const ids: string[] = [];
    for (let count = 0; count < 7; count += 1) ids.push((await cloud.createInstance(instanceSpec())).id);
    const first = await cloud.listInstances(null);
    expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 3));
    await cloud.deleteInstance(ids[1]!);
    const second = await cloud.listInstances(first.next);
    expect(second.items.map(({ id }) => id)).toEqual(ids.slice(3, 6));
    const third = await cloud.listInstances(second.next);
    expect(third.items.map(({ id }) => id)).toEqual(ids.slice(6));
    expect(third.next).toBeNull();
    expect(await failureOf(() => cloud.listInstances('nonsense'))).toMatchObject({ code: 'invalid' });
  });

  it('end with the last full page', async () => {
    const { cloud } = cloudWith({ 'page-size': 2 });
    for (let count = 0; count < 4; count += 1) await cloud.createInstance(instanceSpec());
    const { next } = await cloud.listInstances(null);
    expect(await cloud.listInstances(next)).toMatchObject({ next: null, items: [{}, {}] });
  });

  it('lack new instances and contain deleted ones until list-lag has passed', async () => {
    const { cloud, clock } = cloudWith({ 'list-lag': 3 });
    const { id } = await cloud.createInstance(instanceSpec());
    const list = async () => cloud.listInstances(null);
    expect(await onlyState(list())).toBeUndefined();
    await clock.advance(3000);
    expect(await onlyState(list())).toBe('running');
    await cloud.deleteInstance(id);
    expect(cloud.existingInstances()).toEqual([]);
    expect(await onlyState(list())).toBe('deleting');
    expect(await failureOf(() => cloud.deleteInstance(id))).toMatchObject({ code: 'not-found' });
    await clock.advance(3000);
    expect(await onlyState(list())).toBeUndefined();
  });
});

describe('a slow API', () => {
  it('applies a call half-way, and answers at the end', async () => {
    const { cloud, clock } = cloudWith({ 'api-latency': 4 });
    let answered = false;
    void Promise.resolve(cloud.createInstance(instanceSpec())).then(() => (answered = true));
    await clock.advance(1999);
    expect(cloud.existingInstances()).toHaveLength(0);
    await clock.advance(1);
    expect(cloud.existingInstances()).toHaveLength(1);
    expect(answered).toBe(false);
    await clock.advance(2000);
    expect(answered).toBe(true);
  });
});

describe('faults', () => {
  it.each([
    ['create-errors', 'internal'],
    ['capacity-errors', 'no-capacity'],
    ['auth-errors', 'unauthorized'],
  ])('%s: creates no instance', async (fault, code) => {
    const { cloud } = cloudWith({ faults: { [fault]: 1 } });
    expect(await failureOf(() => cloud.createInstance(instanceSpec()))).toMatchObject({ code });
    expect(cloud.existingInstances()).toEqual([]);
  });

  it('lost-answers: creates an instance, and loses the answer', async () => {
    const { cloud } = cloudWith({ faults: { 'lost-answers': 1 } });
    expect(await failureOf(() => cloud.createInstance(instanceSpec()))).toMatchObject({ code: 'answer-lost' });
    const [instance] = cloud.existingInstances();
    expect(await failureOf(() => cloud.deleteInstance(instance!.id))).toMatchObject({ code: 'answer-lost' });
    expect(cloud.existingInstances()).toEqual([]);
  });

  it('failed-instances: an instance fails with a reason at the end of its boot', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 2, faults: { 'failed-instances': 1 } });
    await cloud.createInstance(instanceSpec());
    expect(cloud.existingInstances()).toMatchObject([{ state: 'building', failure: null }]);
    await clock.advance(2000);
    expect(cloud.existingInstances()).toMatchObject([{ state: 'failed', failure: expect.stringContaining('panic') }]);
  });

  it('stuck-instances: an instance never finishes booting, and can be deleted', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 2, faults: { 'stuck-instances': 1 } });
    const { id } = await cloud.createInstance(instanceSpec());
    await clock.advance(1e9);
    expect(cloud.existingInstances()).toMatchObject([{ state: 'building' }]);
    await cloud.deleteInstance(id);
    expect(cloud.existingInstances()).toEqual([]);
  });

  it('delete-errors and list-errors: fail without an effect', async () => {
    const { cloud } = cloudWith();
    const { id } = await cloud.createInstance(instanceSpec());
    cloud.configure({ faults: { ...DEFAULT_SETTINGS.faults, 'delete-errors': 1, 'list-errors': 1 } });
    expect(await failureOf(() => cloud.deleteInstance(id))).toMatchObject({ code: 'internal' });
    expect(await failureOf(() => cloud.listInstances(null))).toMatchObject({ code: 'internal' });
    expect(cloud.existingInstances()).toMatchObject([{ id, state: 'running' }]);
  });

  it('occur with the configured probability, and in the same calls for the same seed', async () => {
    const failurePattern = async (seed: number): Promise<string> => {
      const { cloud } = cloudWith({ faults: { 'create-errors': 0.3 } }, seed);
      let pattern = '';
      for (let count = 0; count < 300; count += 1) {
        try {
          await cloud.createInstance(instanceSpec());
          pattern += '.';
        } catch {
          pattern += 'x';
        }
      }
      return pattern;
    };
    const pattern = await failurePattern(42);
    const failures = pattern.split('x').length - 1;
    expect(failures).toBeGreaterThan(60);
    expect(failures).toBeLessThan(120);
    expect(await failurePattern(42)).toBe(pattern);
    expect(await failurePattern(43)).not.toBe(pattern);
  });
});

describe('images', () => {
  const md5 = createHash('md5').update('abcdef').digest('hex');
  const sha256 = createHash('sha256').update('abcdef').digest('hex');

  it('can be used when their data are complete and correct', async () => {
    const { cloud } = cloudWith();
    const { id, state } = await cloud.createImage(imageSpec({ size: 6, md5, sha256, tags: { a: 'b' } }));
    expect(state).toBe('queued');
    expect(await failureOf(() => cloud.createInstance(instanceSpec({ image: id })))).toMatchObject({
      code: 'not-found',
    });
    expect(await cloud.putImageData(id, pieces('abc', 'def'))).toMatchObject({ id, state: 'ready' });
    expect(await cloud.createInstance(instanceSpec({ image: id }))).toMatchObject({ image: id });
    expect((await cloud.listImages(null)).items).toMatchObject([{ id, size: 6, tags: { a: 'b' } }]);
  });

  it.each([
    ['shorter', { size: 7 }, '6 bytes instead of 7'],
    ['longer', { size: 5 }, 'more than 5 bytes'],
    ['with another md5', { size: 6, md5: 'ff' }, 'md5'],
    ['with another sha256', { size: 6, sha256: 'ff' }, 'sha256'],
  ])('never become ready if their data are %s than announced', async (_name, change, reason) => {
    const { cloud } = cloudWith();
    const { id } = await cloud.createImage(imageSpec(change));
    const failure = await failureOf(() => cloud.putImageData(id, pieces('abc', 'def')));
    expect(failure).toMatchObject({ code: 'checksum', message: expect.stringContaining(reason) });
    expect((await cloud.listImages(null)).items).toMatchObject([{ id, state: 'failed' }]);
  });

  it('no longer exist after their deletion, and cannot be used', async () => {
    const { cloud } = cloudWith();
    const { id } = await cloud.createImage(imageSpec());
    await cloud.deleteImage(id);
    expect(await failureOf(() => cloud.deleteImage(id))).toMatchObject({ code: 'not-found' });
    expect(await failureOf(() => cloud.putImageData(id, pieces('abc')))).toMatchObject({ code: 'not-found' });
    expect(await failureOf(() => cloud.createInstance(instanceSpec({ image: id })))).toMatchObject({
      code: 'not-found',
    });
    expect((await cloud.listImages(null)).items).toEqual([]);
  });

  it('stay incomplete if their upload breaks off', async () => {
    const { cloud } = cloudWith({ faults: { 'upload-errors': 1 } });
    const { id } = await cloud.createImage(imageSpec());
    expect(await failureOf(() => cloud.putImageData(id, pieces('abc')))).toMatchObject({ code: 'internal' });
    expect((await cloud.listImages(null)).items).toMatchObject([{ id, state: 'queued' }]);
  });

  it('are listed in pages', async () => {
    const { cloud } = cloudWith({ 'page-size': 2 });
    for (let count = 0; count < 3; count += 1) await cloud.createImage(imageSpec({ name: `image-${count}` }));
    const first = await cloud.listImages(null);
    const second = await cloud.listImages(first.next);
    expect([...first.items, ...second.items].map(({ name }) => name)).toEqual(['image-0', 'image-1', 'image-2']);
    expect(second.next).toBeNull();
  });
});
