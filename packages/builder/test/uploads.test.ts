/** Targets and outcomes of uploads. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Provider } from '@nodepool/core';
import type { HookCall } from '../src/index.js';
import { NO_FAULTS } from './support/image-cloud.js';
import { World, type Site } from './support/world.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const SITE: Site = {
  images: { debian: {} },
  providers: { one: { images: ['debian'] }, two: { images: ['debian'] } },
};

describe('a build', () => {
  it('is uploaded to every provider that lists the image, with its owner’s tags', async () => {
    await world.builder({
      ...SITE,
      providers: { ...SITE.providers, one: { images: ['debian'], metadata: { hw_disk_bus: 'scsi' } } },
    });
    await world.until('it is uploaded to one', () => world.readyUploads('debian', 'one') === 1);
    await world.until('it is uploaded to two', () => world.readyUploads('debian', 'two') === 1);
    const [upload] = world.uploads('debian', 'one');
    const [image] = world.cloud.ofProvider('one');
    expect(image).toMatchObject({
      metadata: { hw_disk_bus: 'scsi' },
      tags: {
        nodepool_installation: (await world.operator()).installation.id,
        nodepool_provider_name: 'one',
        nodepool_image_name: 'debian',
        nodepool_build_id: upload?.build,
        nodepool_upload_id: upload?.id,
        nodepool_image_format: 'qcow2',
      },
    });
    expect(image?.name).toMatch(/^debian-[0-9]{10}$/);
    expect(upload).toMatchObject({
      external_id: image?.id,
      external_name: image?.name,
      format: 'qcow2',
      username: 'zuul',
      python_path: 'auto',
      shell_type: null,
    });
  });

  it('is not uploaded by a builder that has not built it, although it can read the files', async () => {
    const { machine } = await world.builder({ images: { debian: { formats: ['qcow2'] } }, providers: {} });
    await world.until('it is built', () => world.readyBuilds('debian') === 1);
    await world.builder(SITE, { ...machine, name: 'another', builderId: 'id-of-another' });
    await world.after(HOUR);
    expect(world.cloud.startedUploads).toEqual([]);
    expect(world.uploads('debian', 'one')).toEqual([]);
  });

  it('gets the name that the provider configures', async () => {
    const upload = { imageNameFormat: 'ci/{image_name}.{upload_id}.{other}' };
    await world.builder({ ...SITE, providers: { one: { images: ['debian'], upload } } });
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    const [record] = world.uploads('debian', 'one');
    expect(record?.['external_name']).toBe(`ci/debian.${record?.id ?? ''}.{other}`);
  });

  it('is not uploaded where the image is paused', async () => {
    await world.builder({ ...SITE, providers: { ...SITE.providers, one: { images: ['debian'], pause: true } } });
    await world.until('it is uploaded to two', () => world.readyUploads('debian', 'two') === 1);
    await world.after(HOUR);
    expect(world.cloud.startedUploads).toEqual(['two']);
  });

  it('is uploaded by the builder that has its files', async () => {
    const first = await world.builder(SITE);
    await world.until('it is built', () => first.dib.jobs.length === 1);
    await world.builder(SITE);
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    expect(world.cloud.startedUploads.filter((provider) => provider === 'one')).toHaveLength(1);
  });

  it('is uploaded again when an operator deletes its upload', async () => {
    await world.builder(SITE);
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    const { images } = await world.operator();
    const [upload] = images.uploads({ image: 'debian', provider: 'one' });
    const locked = upload && (await world.during(images.tryLockUpload(upload, { change: { state: 'deleting' } })));
    if (locked !== undefined) await world.during(locked.release());
    await world.until('another is there', () => world.uploads('debian', 'one').some(({ state }) => state === 'ready'));
    expect(world.cloud.ofProvider('one')).toHaveLength(1);
    expect(world.uploads('debian', 'one').map(({ id }) => id)).not.toContain(upload?.id);
  });
});

describe('a failed upload', () => {
  it('leaves neither image nor record, and is retried until it succeeds', async () => {
    world.cloud.faults = { ...NO_FAULTS, uploadFails: 1 };
    await world.builder(SITE);
    await world.after(3 * HOUR);
    world.cloud.faults = NO_FAULTS;
    const attempts = world.cloud.startedUploads.filter((provider) => provider === 'one').length;
    expect(attempts).toBeGreaterThan(4);
    expect(attempts).toBeLessThan(20);
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.after(HOUR);
    expect(world.uploads('debian', 'one')).toHaveLength(1);
    expect(world.cloud.ofProvider('one')).toHaveLength(1);
  });

  it('with a lost answer results in one image', async () => {
    world.cloud.faults = { ...NO_FAULTS, answerLost: 1 };
    await world.builder(SITE);
    await world.after(30 * MINUTE);
    world.cloud.faults = NO_FAULTS;
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.after(HOUR);
    expect(world.cloud.ofProvider('one').map(({ id }) => id)).toEqual([
      world.uploads('debian', 'one')[0]?.['external_id'],
    ]);
  });

  it('to one provider does not delay another', async () => {
    world.cloud.faultsOf.set('one', { ...NO_FAULTS, uploadFails: 1 });
    await world.builder(SITE);
    await world.until('it is uploaded to two', () => world.readyUploads('debian', 'two') === 1);
    expect(world.readyUploads('debian', 'one')).toBe(0);
  });

  it('of an expired session is deleted from the cloud and repeated', async () => {
    world.cloud.uploadMs = [HOUR, HOUR];
    const { zk } = await world.builder({
      ...SITE,
      providers: { one: { images: ['debian'], upload: { imageUploadTimeoutMs: 6 * HOUR } } },
    });
    await world.until('it is being uploaded', () => world.cloud.images.size === 1);
    const [lost] = world.cloud.images.keys();
    world.server.expireSession(zk);
    await world.until('it is being uploaded anew', () => world.cloud.startedUploads.length === 2);
    await world.after(5 * MINUTE);
    expect(world.uploads('debian', 'one')).toMatchObject([{ state: 'uploading' }]);
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.after(HOUR);
    expect(world.cloud.images.has(lost ?? '')).toBe(false);
    expect(world.uploads('debian', 'one')).toHaveLength(1);
  });
});

describe('a provider that hangs', () => {
  it('delays the others by a few minutes at most', async () => {
    world.workers = { uploadWorkers: 1 };
    world.cloud.faultsOf.set('one', { ...NO_FAULTS, hangs: 1 });
    const upload = { imageUploadTimeoutMs: 6 * HOUR };
    const { builder } = await world.builder({
      images: { debian: {}, fedora: {} },
      providers: { one: { images: ['debian', 'fedora'], upload }, two: { images: ['debian', 'fedora'], upload } },
    });
    await world.until('it hangs', () => builder.activity().uploads.some(({ provider }) => provider === 'one'));
    await world.after(10 * MINUTE);
    expect([world.readyUploads('debian', 'two'), world.readyUploads('fedora', 'two')]).toEqual([1, 1]);
  });

  it('is retried after the timeout of its upload, even if its driver ignores the signal', async () => {
    world.cloud.faults = { ...NO_FAULTS, hangs: 1 };
    await world.builder(SITE);
    await world.until('it hangs', () => world.cloud.startedUploads.includes('one'));
    world.cloud.faults = NO_FAULTS;
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
  });
});

describe('an upload without progress', () => {
  const upload = { imageUploadTimeoutMs: 24 * HOUR };
  const site = { ...SITE, providers: { one: { images: ['debian'], upload } } };

  it.each(['hangs', 'neverAnswers'] as const)(
    'ends after 15 minutes and is repeated if the cloud %s',
    async (fault) => {
      world.cloud.faults = { ...NO_FAULTS, [fault]: 1 };
      await world.builder(site);
      await world.until('it is started', () => world.cloud.startedUploads.length === 1);
      await world.after(14 * MINUTE);
      expect(world.uploads('debian', 'one')).toMatchObject([{ state: 'uploading' }]);
      world.cloud.faults = NO_FAULTS;
      await world.after(4 * MINUTE);
      expect(world.readyUploads('debian', 'one')).toBe(1);
    },
  );

  it('is replaced by that of a newer build', async () => {
    world.cloud.faults = { ...NO_FAULTS, neverAnswers: 1 };
    await world.builder(site);
    await world.until('it is started', () => world.cloud.startedUploads.length === 1);
    const { images } = await world.operator();
    await world.during(images.requestBuild('debian'));
    await world.until('there is a newer build', () => world.readyBuilds('debian') === 2);
    world.cloud.faults = NO_FAULTS;
    await world.after(20 * MINUTE);
    expect(world.uploads('debian', 'one').filter(({ state }) => state === 'ready')).toMatchObject([
      { build: world.builds('debian').at(-1)?.id },
    ]);
  });
});

describe('the post-upload-hook', () => {
  it('runs before nodes use the image, and nodes never use one that it rejects', async () => {
    const calls: HookCall[] = [];
    world.hook = async (call) => {
      calls.push(call);
      expect(world.readyUploads('debian', 'one')).toBe(0);
      if (calls.length === 1) throw new Error('not good enough');
    };
    const upload = { postUploadHook: '/usr/local/bin/check-image' };
    await world.builder({ ...SITE, providers: { one: { images: ['debian'], upload } } });
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    await world.after(HOUR);
    expect(calls).toMatchObject([
      { command: '/usr/local/bin/check-image', provider: 'one', externalId: 'image-1' },
      { externalId: 'image-2' },
    ]);
    expect([...world.cloud.images.keys()]).toEqual(['image-2']);
  });
});

describe('a post-upload-hook that hangs', () => {
  it('fails after the upload timeout', async () => {
    let calls = 0;
    world.hook = async () => {
      calls += 1;
      if (calls === 1) await new Promise(() => undefined);
    };
    await world.builder({
      ...SITE,
      providers: { one: { images: ['debian'], upload: { postUploadHook: '/usr/local/bin/check-image' } } },
    });
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    expect(calls).toBe(2);
  });
});

describe('a changed configuration', () => {
  it('does not stop a running upload, and applies to the next', async () => {
    world.cloud.uploadMs = [HOUR, HOUR];
    const upload = { imageUploadTimeoutMs: 6 * HOUR };
    const { apply } = await world.builder({ ...SITE, providers: { one: { images: ['debian'], upload } } });
    await world.until('it is being uploaded', () => world.cloud.images.size === 1);
    apply({ ...SITE, providers: { one: { images: ['debian'], upload, metadata: { changed: 'yes' } } } });
    await world.until('it is uploaded', () => world.readyUploads('debian', 'one') === 1);
    expect(world.cloud.startedUploads).toEqual(['one']);
    const { images } = await world.operator();
    await world.during(images.requestBuild('debian'));
    await world.until('the next is uploaded', () => world.readyUploads('debian', 'one') === 2);
    expect(world.cloud.ofProvider('one').map(({ metadata }) => metadata)).toEqual([{}, { changed: 'yes' }]);
  });
});

it('a build is uploaded in the format that a reload has found outside of the section', async () => {
  const { builder } = await world.builder(SITE);
  await world.until('it is uploaded to one', () => world.readyUploads('debian', 'one') === 1);
  const config = world.config(SITE);
  const providers = [...config.providers].map(([name, each]) => [name, { ...each, imageFormat: 'raw' }] as const);
  builder.apply({ ...config, providers: new Map(providers) });
  await world.until('the image is uploaded in the other format', () => world.readyUploads('debian', 'one') === 2);
  expect(world.uploads('debian', 'one').map(({ format }) => format)).toEqual(['qcow2', 'raw']);
});

describe('a stop', () => {
  it('waits for running uploads', async () => {
    world.cloud.uploadMs = [HOUR, HOUR];
    const upload = { imageUploadTimeoutMs: 6 * HOUR };
    const { builder } = await world.builder({ ...SITE, providers: { one: { images: ['debian'], upload } } });
    await world.until('it is being uploaded', () => world.cloud.images.size === 1);
    await world.during(builder.stop());
    expect(world.readyUploads('debian', 'one')).toBe(1);
  });
});

describe('a faulty driver', () => {
  const site: Site = {
    images: { debian: {} },
    providers: { faulty: { images: ['debian'] }, sound: { images: ['debian'] } },
  };
  const faulty = (defects: Partial<Provider>): void => {
    world.getProvider = (provider) => (provider.config.name === 'faulty' ? { ...provider, ...defects } : provider);
  };

  it('that creates no provider does not concern the others', async () => {
    world.getProvider = (provider) => {
      if (provider.config.name === 'faulty') throw new Error('no such zone');
      return provider;
    };
    const { apply } = await world.builder(site);
    await world.until('the image is uploaded', () => world.readyUploads('debian', 'sound') === 1);
    expect(world.readyUploads('debian', 'faulty')).toBe(0);
    world.getProvider = (provider) => provider;
    apply(site);
    await world.until('it is uploaded to the other', () => world.readyUploads('debian', 'faulty') === 1);
  });

  it.each<[string, Partial<Provider>]>([
    ['never ends', { join: () => new Promise(() => undefined) }],
    [
      'throws when it is stopped',
      {
        stop: () => {
          throw new Error('not connected');
        },
      },
    ],
  ])('that %s does not delay the end of the builder', async (_how, defects) => {
    faulty(defects);
    const { builder } = await world.builder(site);
    await world.until('the image is uploaded', () => world.readyUploads('debian', 'sound') === 1);
    let ended = false;
    void builder.stop().then(() => (ended = true));
    await world.after(60_000);
    expect(ended).toBe(true);
    expect(world.paths().filter((path) => path.startsWith('/nodepool/components/builder/'))).toEqual([]);
  });
});
