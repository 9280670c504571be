/** A provider's other duties: cleanup, leaks, listings, quota, images. */

import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import type { ImageUploadRequest, JsonObject, Resource } from '@nodepool/core';
import { DEFAULT_SETTINGS } from '../src/cloud/settings.js';
import { callOn, INSTALLATION } from '@nodepool/driver-kit';
import { cloudWith, failureOf, instanceSpec } from './helpers.js';
import { cleanUp, endingOf, launch, launchOf, PROVIDER, section, startProvider, tagsOf } from './provider.js';

describe('the cleanup of a node', () => {
  it('completes when the cloud confirms that the instance does not exist', async () => {
    const { cloud, clock } = cloudWith({ 'delete-time': 5 });
    const { provider, failures } = await startProvider(clock, cloud);
    const { externalId } = await launch(provider, launchOf(clock, '0000000001'));
    const done = endingOf(cleanUp(provider, clock, '0000000001', externalId));
    await clock.advance(4900);
    expect(done.ended).toBe(false);
    await clock.advance(2000);
    expect(done).toEqual({ ended: true, value: undefined });
    expect(cloud.existingInstances()).toEqual([]);
    expect(failures).toEqual([]);
  });

  it('completes immediately in a cloud without delays', async () => {
    const { cloud, clock } = cloudWith();
    const { provider, apiCalls } = await startProvider(clock, cloud);
    const { externalId } = await launch(provider, launchOf(clock, '0000000001'));
    apiCalls.length = 0;
    await cleanUp(provider, clock, '0000000001', externalId);
    expect(apiCalls.map(({ operation }) => operation)).toEqual(['delete']);
  });

  it('finds the instance by its tags if its id is unknown, and deletes no foreign ones', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    await launch(provider, launchOf(clock, '0000000001'));
    const other = await launch(provider, launchOf(clock, '0000000002'));
    const done = endingOf(cleanUp(provider, clock, '0000000001', null));
    await clock.advance(20_000);
    expect(done).toEqual({ ended: true, value: undefined });
    expect(cloud.existingInstances().map(({ id }) => id)).toEqual([other.externalId]);
  });

  it.each([
    ['does not exist', {}],
    ['cannot be deleted for a while', { 'delete-errors': 0.7 }],
    ['is deleted although the answer is lost', { 'lost-answers': 0.7 }],
  ])('succeeds for an instance that %s', async (_case, faults) => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    const { externalId } = await launch(provider, launchOf(clock, '0000000001'));
    if (Object.keys(faults).length === 0) cloud.destroyInstance(cloud.existingInstances()[0]!.id);
    cloud.configure({ faults: { ...DEFAULT_SETTINGS.faults, ...faults } });
    const done = endingOf(cleanUp(provider, clock, '0000000001', externalId));
    await clock.advance(500_000);
    expect(done).toEqual({ ended: true, value: undefined });
    expect(cloud.existingInstances()).toEqual([]);
  });
});

describe('leaked resources', () => {
  it('are reported with their tags, and deleted if they are leaked', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    await launch(provider, launchOf(clock, '0000000001'));
    const kept = await launch(provider, launchOf(clock, '0000000002'));
    await cloud.createInstance(instanceSpec({ name: 'of-others' }));
    const { id: image } = await cloud.createImage({
      name: 'old',
      format: 'raw',
      size: 1,
      md5: null,
      sha256: null,
      properties: {},
      tags: { nodepool_provider_name: PROVIDER, nodepool_upload_id: '0000000009' },
    });
    let offered: readonly Resource[] = [];
    const leaked = async (resources: readonly Resource[]): Promise<readonly Resource[]> => {
      offered = resources;
      return resources.filter(({ tags }) => tags['nodepool_node_id'] !== '0000000002');
    };
    await provider.cleanupLeakedResources({ leaked }, callOn(clock));
    expect(offered.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      'instance np-0000000001',
      'instance np-0000000002',
      'image old',
    ]);
    expect(offered.map(({ externalId }) => externalId)).toContain(image);
    expect(cloud.existingInstances().map(({ name }) => name)).toEqual(['np-0000000002', 'of-others']);
    expect(cloud.existingInstances()[0]?.id).toBe(kept.externalId);
    expect((await cloud.listImages(null)).items).toEqual([]);
  });
});

describe('a provider', () => {
  it('lists the instances of all pages, or fails', async () => {
    const { cloud, clock } = cloudWith({ 'page-size': 2 });
    const { provider } = await startProvider(clock, cloud);
    for (let count = 0; count < 5; count += 1) await launch(provider, launchOf(clock, `${count}`));
    const nodes = await provider.listNodes(callOn(clock));
    expect(nodes.map(({ tags }) => tags['nodepool_node_id'])).toEqual(['0', '1', '2', '3', '4']);
    expect(nodes.every(({ ready, deleted }) => ready && !deleted)).toBe(true);
    cloud.configure({ faults: { ...DEFAULT_SETTINGS.faults, 'list-errors': 1 } });
    expect(await failureOf(() => provider.listNodes(callOn(clock)))).toMatchObject({ code: 'transient' });
  });

  it('reads the quota and the resources of a label', async () => {
    const { cloud, clock } = cloudWith({ quota: { instances: 7, cores: 9 } });
    const { provider } = await startProvider(clock, cloud, section({}, { size: 'medium' }));
    const limits = await provider.getQuotaLimits!(callOn(clock));
    expect([limits.get('instances'), limits.get('cores'), limits.get('ram')]).toEqual([7, 9, Infinity]);
    const need = await provider.getQuotaForLabel!('main', 'small', callOn(clock));
    expect(need.toResources()).toEqual({ instances: 1, cores: 4, ram: 8192 });
    cloud.configure({ quota: { instances: 3, cores: Infinity, ram: Infinity } });
    expect((await provider.getQuotaLimits!(callOn(clock))).get('instances')).toBe(3);
  });

  it('returns the zones of the pool, or else those of the cloud', async () => {
    const { cloud, clock } = cloudWith({ zones: ['a', 'b', 'c'] });
    const all = await startProvider(clock, cloud);
    expect(await all.provider.getAvailabilityZones!('main', callOn(clock))).toEqual(['a', 'b', 'c']);
    const some = await startProvider(clock, cloud, section({}, {}, { 'availability-zones': ['c', 'a'] }));
    expect(await some.provider.getAvailabilityZones!('main', callOn(clock))).toEqual(['c', 'a']);
  });

  it('reports a label as not ready if the cloud does not have its size', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud, section({}, { size: 'huge' }));
    expect(provider.labelReady('main', 'small')).toEqual({
      ready: false,
      reason: 'the cloud has no size "huge"; it has: small, medium, large',
    });
    const good = await startProvider(clock, cloud);
    expect(good.provider.labelReady('main', 'small')).toEqual({ ready: true });
    const sized = (...sizes: string[]): JsonObject =>
      section({}, {}, { labels: [{ name: 'small', 'cloud-image': 'debian', sizes }] });
    const { provider: either } = await startProvider(clock, cloud, sized('huge', 'small'));
    expect(either.labelReady('main', 'small')).toEqual({ ready: true });
    const { provider: neither } = await startProvider(clock, cloud, sized('huge', 'giant'));
    expect(neither.labelReady('main', 'small')).toEqual({
      ready: false,
      reason: 'the cloud has no size "huge" or "giant"; it has: small, medium, large',
    });
  });

  it('returns the console log of an instance', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    const { externalId } = await launch(provider, launchOf(clock, '0000000001'));
    const log = await provider.getConsoleLog!(externalId, { pool: 'main', label: 'small' }, callOn(clock));
    expect(log).toContain('np-0000000001 login:');
  });

  it('fails to start with the reason if its cloud refuses the credentials', async () => {
    const { cloud, clock } = cloudWith({ faults: { 'auth-errors': 1 } });
    expect(await failureOf(() => startProvider(clock, cloud))).toMatchObject({ code: 'auth' });
  });

  it('fails to start within a minute if its cloud does not answer', async () => {
    const { cloud, clock } = cloudWith({ 'api-latency': 3600 });
    const failure = failureOf(() => startProvider(clock, cloud));
    await clock.advance(60_000);
    expect(await failure).toMatchObject({ code: 'timeout' });
  });

  it('has no timer while it is idle', async () => {
    const { cloud, clock } = cloudWith({ 'boot-time': 2, 'delete-time': 2 });
    const { provider } = await startProvider(clock, cloud);
    const ending = endingOf(launch(provider, launchOf(clock, '0000000001')));
    await clock.advance(5000);
    const done = endingOf(cleanUp(provider, clock, '0000000001', ending.value!.externalId));
    await clock.advance(5000);
    expect(done.ended).toBe(true);
    expect(clock.pending).toBe(0);
  });
});

describe('the cloud inside the launcher', () => {
  it('outlives its provider, accepts new settings, and exists once per provider name', async () => {
    const clock = new VirtualClock();
    const local = (name: string, settings: JsonObject): JsonObject => section({ name, cloud: settings });
    const first = await startProvider(clock, undefined, local('demo', {}));
    const { externalId } = await launch(first.provider, launchOf(clock, '0000000001'));
    await first.kill();
    const second = await startProvider(clock, undefined, local('demo', { quota: { instances: 1 } }));
    expect((await second.provider.listNodes(callOn(clock))).map((node) => node.externalId)).toEqual([externalId]);
    expect(await failureOf(() => launch(second.provider, launchOf(clock, '0000000002')))).toMatchObject({
      code: 'quota',
    });
    const other = await startProvider(clock, undefined, local('other', {}));
    expect(await other.provider.listNodes(callOn(clock))).toEqual([]);
  });
});

describe('images', () => {
  async function withFile<T>(text: string, use: (file: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(join(tmpdir(), 'nodepool-example-'));
    try {
      const file = join(folder, 'image.raw');
      await writeFile(file, text);
      return await use(file);
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  function upload(clock: VirtualClock, file: string, change: Partial<ImageUploadRequest> = {}): ImageUploadRequest {
    return {
      ...callOn(clock),
      image: 'debian',
      externalName: 'debian-1',
      file,
      format: 'raw',
      md5: createHash('md5').update('disk').digest('hex'),
      sha256: createHash('sha256').update('disk').digest('hex'),
      metadata: { os: 'linux' },
      tags: {
        nodepool_installation: INSTALLATION,
        nodepool_provider_name: PROVIDER,
        nodepool_image_name: 'debian',
        nodepool_build_id: 'b',
        nodepool_upload_id: '0000000001',
        nodepool_image_format: 'raw',
      },
      progress: () => undefined,
      ...change,
    };
  }

  it('are uploaded with tags, properties and progress, can be used, listed and deleted', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    const images = provider.images!;
    const progress: number[][] = [];
    const id = await withFile('disk', (file) =>
      images.uploadImage(upload(clock, file, { progress: (sent, total) => progress.push([sent, total]) })),
    );
    expect(progress.at(-1)).toEqual([4, 4]);
    expect(await images.listImages(callOn(clock))).toEqual([
      {
        externalId: id,
        name: 'debian-1',
        ready: true,
        properties: { os: 'linux' },
        tags: upload(clock, '').tags,
      },
    ]);
    await launch(provider, launchOf(clock, '0000000001', { imageExternalId: id, tags: tagsOf('0000000001', 'a') }));
    await images.deleteImage(id, callOn(clock));
    await images.deleteImage(id, callOn(clock));
    expect(await images.listImages(callOn(clock))).toEqual([]);
  });

  it.each([
    ['its data are damaged', {}, { sha256: 'ff' }],
    ['the upload breaks off', { 'upload-errors': 1 }, {}],
  ])('leave nothing behind if %s', async (_case, faults, change) => {
    const { cloud, clock } = cloudWith({ faults });
    const { provider } = await startProvider(clock, cloud);
    const failure = await withFile('disk', (file) =>
      failureOf(() => provider.images!.uploadImage(upload(clock, file, change))),
    );
    expect(failure).toMatchObject({ code: 'transient' });
    expect((await cloud.listImages(null)).items).toEqual([]);
  });

  it('leave nothing behind if the answer to their creation is lost', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    cloud.configure({ faults: { ...DEFAULT_SETTINGS.faults, 'lost-answers': 1 } });
    const failure = await withFile('disk', (file) =>
      failureOf(() => provider.images!.uploadImage(upload(clock, file))),
    );
    expect(failure).toMatchObject({ code: 'transient', outcome: 'unknown' });
    expect((await cloud.listImages(null)).items).toEqual([]);
  });

  it('cause an error with the path if the file cannot be read', async () => {
    const { cloud, clock } = cloudWith();
    const { provider } = await startProvider(clock, cloud);
    const failure = await failureOf(() => provider.images!.uploadImage(upload(clock, '/nonexistent/image.raw')));
    expect(failure).toMatchObject({ message: expect.stringContaining('/nonexistent/image.raw') });
  });
});
