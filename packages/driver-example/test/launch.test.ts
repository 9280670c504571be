/** Launches through a provider, with and without faults of the cloud. */

import { describe, expect, it } from '@jest/globals';
import { DEFAULT_SETTINGS } from '../src/cloud/settings.js';
import { cloudWith, instanceSpec } from './helpers.js';
import { endingOf, launch, launchOf, section, startProvider, tagsOf } from './provider.js';

describe('a launch', () => {
  it('returns the instance with addresses, zone and resources, and tags it', async () => {
    const { cloud, clock } = cloudWith({ zones: ['a', 'b'] });
    const { provider } = await startProvider(clock, cloud);
    const instance = await launch(provider, launchOf(clock, '0000000001', { availabilityZone: 'b' }));
    const [made] = cloud.existingInstances();
    expect(made).toMatchObject({ name: 'np-0000000001', image: 'debian', zone: 'b', cores: 1, ram: 1024 });
    expect(made?.tags).toEqual(tagsOf('0000000001', 'attempt-of-0000000001'));
    expect(instance).toMatchObject({
      externalId: made?.id,
      interfaceIp: made?.publicIpv4,
      publicIpv4: made?.publicIpv4,
      privateIpv4: made?.privateIpv4,
      publicIpv6: made?.publicIpv6,
      az: 'b',
      resources: { instances: 1, cores: 1, ram: 1024 },
      machine: { type: 'small' },
    });
  });

  it('can use separate cores and ram, an uploaded image, and the private address', async () => {
    const { cloud, clock } = cloudWith();
    const image = await cloud.createImage({
      name: 'x',
      format: 'raw',
      size: 0,
      md5: null,
      sha256: null,
      tags: {},
      properties: {},
    });
    await cloud.putImageData(image.id, (async function* () {})());
    const label = { size: null, cores: 3, ram: 333 };
    const { provider } = await startProvider(clock, cloud, section({}, label, { 'use-internal-ip': true }));
    const instance = await launch(provider, launchOf(clock, '0000000001', { imageExternalId: image.id }));
    const [made] = cloud.existingInstances();
    expect(made).toMatchObject({ image: image.id, cores: 3, ram: 333 });
    expect(instance.interfaceIp).toBe(made?.privateIpv4);
  });

  it('completes immediately in a cloud without delays: no listing, no timer, no saved state', async () => {
    const { cloud, clock } = cloudWith();
    const { provider, apiCalls } = await startProvider(clock, cloud);
    apiCalls.length = 0;
    const launches = Array.from({ length: 50 }, (_, index) => launchOf(clock, String(index).padStart(10, '0')));
    const endings = launches.map((nodeLaunch) => endingOf(launch(provider, nodeLaunch)));
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    expect(endings.every(({ value }) => value !== undefined)).toBe(true);
    expect(launches.flatMap(({ saves }) => saves)).toEqual([]);
    expect(new Set(apiCalls.map(({ operation }) => operation))).toEqual(new Set(['create']));
    expect(clock.monotonic()).toBe(0);
  });

  it('waits until the instance runs, and shares the listings with a hundred other launches', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 10 });
    const { provider, apiCalls } = await startProvider(clock, cloud);
    apiCalls.length = 0;
    const endings = Array.from({ length: 100 }, (_, index) => endingOf(launch(provider, launchOf(clock, `${index}`))));
    await clock.advance(9000);
    expect(endings.filter(({ ended }) => ended)).toHaveLength(0);
    await clock.advance(2000);
    expect(endings.filter(({ value }) => value !== undefined)).toHaveLength(100);
    const listings = apiCalls.filter(({ operation }) => operation === 'list').length;
    expect(listings).toBeLessThanOrEqual(12);
    await clock.advance(60_000);
    expect(apiCalls.filter(({ operation }) => operation === 'list')).toHaveLength(listings);
  });

  it.each([
    ['its instance fails', { faults: { 'failed-instances': 1 }, 'boot-time': 2 }, 'instance-failed', 'panicked'],
    ['the quota is exhausted', { quota: { instances: 0 } }, 'quota', 'quota exceeded'],
    ['the cloud does not know its image', { 'public-images': ['other'] }, 'configuration', 'debian'],
    ['the zone has no capacity', { faults: { 'capacity-errors': 1 } }, 'capacity', 'no capacity'],
    ['its instance never boots', { faults: { 'stuck-instances': 1 } }, 'timeout', 'booting'],
    [
      'its instance never appears in a listing',
      { 'list-lag': 10_000, 'boot-time': 1 },
      'instance-failed',
      'disappeared',
    ],
  ])('fails if %s', async (_case, settings, code, message) => {
    const { cloud, clock } = cloudWith(settings);
    const { provider } = await startProvider(clock, cloud);
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001')));
    await clock.advance(601_000);
    expect(ending).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  it('fails if its instance is destroyed during the boot', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 60 });
    const { provider } = await startProvider(clock, cloud);
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001')));
    await clock.advance(5000);
    cloud.destroyInstance(cloud.existingInstances()[0]!.id);
    await clock.advance(20_000);
    expect(ending).toMatchObject({ code: 'instance-failed' });
  });

  it('makes its calls at the configured rate', async () => {
    const { cloud, clock } = cloudWith({ 'rate-limit': 2 });
    const { provider } = await startProvider(clock, cloud, section({ rate: 2 }));
    const endings = Array.from({ length: 10 }, (_, index) => endingOf(launch(provider, launchOf(clock, `${index}`))));
    await clock.advance(5500);
    expect(endings.filter(({ value }) => value !== undefined)).toHaveLength(10);
  });

  it('leaves the queue of calls at its deadline, and creates nothing', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud, section({ rate: 0.01 }));
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001', { deadline: 5000 })));
    await clock.advance(5000);
    expect(ending).toMatchObject({ code: 'timeout' });
    await clock.advance(1e6);
    expect(cloud.existingInstances()).toEqual([]);
  });
});

describe('a create call with an unknown outcome', () => {
  it('leads to the instance if it was created', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 3, 'list-lag': 2, faults: { 'lost-answers': 1 } });
    const { provider, apiCalls } = await startProvider(clock, cloud);
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001')));
    await clock.advance(10_000);
    expect(ending.value).toMatchObject({ externalId: cloud.existingInstances()[0]?.id });
    expect(cloud.existingInstances()).toHaveLength(1);
    expect(apiCalls.filter(({ operation }) => operation === 'create')).toHaveLength(1);
  });

  it('fails the launch as not applied if no instance appears in the listings in time', async () => {
    const { cloud, clock } = cloudWith({ faults: { 'create-errors': 1 } });
    const { provider, apiCalls } = await startProvider(clock, cloud);
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001')));
    await clock.advance(3000);
    expect(ending.ended).toBe(false);
    await clock.advance(10_000);
    expect(ending).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(apiCalls.filter(({ operation }) => operation === 'create')).toHaveLength(1);
  });

  it('does not lead to the instance of an earlier attempt', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    await launch(provider, launchOf(clock, '0000000001'));
    cloud.configure({ faults: { ...DEFAULT_SETTINGS.faults, 'create-errors': 1 } });
    const again = launchOf(clock, '0000000001', { tags: tagsOf('0000000001', 'second-attempt') });
    const ending = endingOf(launch(provider, again));
    await clock.advance(10_000);
    expect(ending).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });
});

describe('a launch whose launcher was killed', () => {
  it('is resumed by another process at any step, with exactly one instance', async () => {
    let resumed = 0;
    for (let diedAt = 0; diedAt < 9000; diedAt += 500) {
      const { cloud, clock } = cloudWith({ 'api-latency': 2, 'boot-time': 4, 'list-lag': 1 });
      const starting = startProvider(clock, cloud);
      await clock.advance(2000);
      const first = await starting;
      const nodeLaunch = launchOf(clock, '0000000001');
      const ending = endingOf(launch(first.provider, nodeLaunch));
      await clock.advance(diedAt);
      await first.kill();
      if (ending.value !== undefined) continue;
      resumed += 1;

      const restarting = startProvider(clock, cloud);
      await clock.advance(2000);
      const second = await restarting;
      const last = nodeLaunch.saves.at(-1);
      const again = launchOf(clock, '0000000001', {
        saved: last?.machine ?? { state: 'creating' },
        externalId: typeof last?.externalId === 'string' ? last.externalId : null,
      });
      const outcome = endingOf(launch(second.provider, again));
      await clock.advance(60_000);
      const made = cloud.existingInstances();
      expect(made).toHaveLength(1);
      expect(outcome.value).toMatchObject({ externalId: made[0]?.id });
    }
    expect(resumed).toBeGreaterThan(5);
  });

  it('continues with a known instance id, even without other saved state', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 4 });
    const { id } = await cloud.createInstance(instanceSpec());
    const { provider } = await startProvider(clock, cloud);
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001', { externalId: id })));
    await clock.advance(10_000);
    expect(ending.value).toMatchObject({ externalId: id });
    expect(cloud.existingInstances()).toHaveLength(1);
  });

  it('fails and creates nothing if the create call did not reach the cloud', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001', { saved: { state: 'creating' } })));
    await clock.advance(20_000);
    expect(ending).toMatchObject({ outcome: 'not-applied', message: expect.stringContaining('restarted') });
    expect(cloud.existingInstances()).toEqual([]);
  });
});
