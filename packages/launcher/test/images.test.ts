/** Tests of labels with a disk image: they wait for its upload, use the newest one, and switch to a new one at once. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DecisionLog } from '@nodepool/status';
import type { DiskImageConfig, JsonObject } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { isZooKeeperError } from '@nodepool/zookeeper';
import { faultyDriver } from './support/faulty-driver.js';
import { REQUESTS, World, pool, provider } from './support/world.js';

const UPLOADS = '/nodepool/images/debian/builds/build/providers/demo/images';

let world: World;
let decisions: DecisionLog;
beforeEach(() => {
  world = new World();
  decisions = new DecisionLog({ clock: world.clock });
  world.observation = { decisions };
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const demo = provider('demo', [pool('main', [], { labels: [{ name: 'small', diskimage: 'debian', size: 'small' }] })], {
  diskimages: [{ name: 'debian' }],
});

const DEBIAN: DiskImageConfig = {
  name: 'debian',
  abstract: false,
  parent: undefined,
  formats: [],
  keepFormats: [],
  deleteAfterUpload: false,
  rebuildAgeMs: Infinity,
  release: undefined,
  buildTimeoutMs: Infinity,
  elements: [],
  envVars: {},
  pause: false,
  username: 'zuul',
  pythonPath: 'auto',
  shellType: undefined,
  dibCmd: 'disk-image-create',
  metadata: {},
};

/** Writes a record as a builder does; deletes it if there are no data. */
async function write(path: string, data: JsonObject | undefined): Promise<void> {
  const zk = world.server.connect();
  const parts = path.split('/').slice(1);
  const put = async (): Promise<void> => {
    for (let length = 1; length <= parts.length; length += 1) {
      const part = `/${parts.slice(0, length).join('/')}`;
      const content = part === path ? Buffer.from(JSON.stringify(data)) : Buffer.alloc(0);
      try {
        await zk.create(part, content);
      } catch (error) {
        if (!isZooKeeperError(error, 'node-exists')) throw error;
        if (part === path) await zk.set(part, content);
      }
    }
    await zk.close();
  };
  await world.during(put());
}

async function upload(id: string, state: string, time: number, externalId = `image-${id}`): Promise<void> {
  await write('/nodepool/images/debian/builds/build', { state: 'ready', state_time: 1, formats: 'raw', builder: 'b' });
  await write(`${UPLOADS}/${id}`, {
    state,
    state_time: time,
    external_id: state === 'ready' ? externalId : null,
    external_name: 'debian',
    format: 'raw',
    username: 'zuul',
    python_path: 'auto',
    shell_type: null,
  });
}

const imageOf = (id: string): unknown => world.nodes().get(id)?.image_id;

async function submit(options = {}): Promise<string> {
  return world.submit(['small'], options);
}

async function fulfilled(id: string): Promise<string> {
  const [node = ''] = await world.fulfilled(id);
  return node;
}

describe('a label with a disk image', () => {
  it('waits for a running upload, reports that, and is served as soon as it is ready', async () => {
    await upload('0000000001', 'uploading', 10);
    await world.launcher([demo]);
    const id = await submit();
    await world.clock.advance(60_000);
    expect(world.stateOf(id)).toBe('requested');
    expect(decisions.of('request', id).at(-1)?.reason).toBe(
      'label small waits for the upload of build build of disk image debian',
    );
    await upload('0000000001', 'ready', 20);
    expect(imageOf(await fulfilled(id))).toBe(`${UPLOADS}/0000000001`);
  });

  it('is declined when there is no ready or running upload', async () => {
    await world.launcher([demo]);
    const id = await submit();
    await world.inState(id, 'failed');
    expect(decisions.of('request', id).at(-1)?.reason).toContain('has no upload to this provider that is ready');
    const record = world.records(REQUESTS).get(id) ?? {};
    const reasons = Object.entries(record['decline_reasons'] ?? {});
    expect(reasons).toEqual([[expect.anything(), expect.stringContaining('has no upload to this provider')]]);
    expect(record['declined_by']).toEqual(reasons.map(([declined]) => declined));
  });

  it('is declined, and its pool serves other labels, if the provider does not list the image', async () => {
    const labels = [
      { name: 'small', diskimage: 'debian', size: 'small' },
      { name: 'other', 'cloud-image': 'cloud', size: 'small' },
    ];
    const wound = provider('demo', [pool('main', [], { labels })], {
      diskimages: [],
      'cloud-images': [{ name: 'cloud' }],
    });
    await world.launcher([wound], 'launcher1', { diskImages: new Map([['debian', DEBIAN]]) });
    await world.inState(await submit(), 'failed');
    await world.fulfilled(await world.submit(['other']));
  });

  it('uses the newest upload, and a new one for every later launch', async () => {
    await upload('0000000002', 'ready', 10);
    await upload('0000000001', 'ready', 20);
    await world.launcher([demo]);
    expect(imageOf(await fulfilled(await submit({ reuse: false })))).toBe(`${UPLOADS}/0000000001`);
    await upload('0000000003', 'ready', 30);
    expect(imageOf(await fulfilled(await submit({ reuse: false })))).toBe(`${UPLOADS}/0000000003`);
    const images = world.cloud.existingInstances().map(({ image }) => image);
    expect(images).toEqual(['image-0000000001', 'image-0000000003']);
  });

  it('uses the second newest upload if the newest image is missing in the cloud, also with one attempt', async () => {
    await upload('0000000001', 'ready', 10);
    await upload('0000000002', 'ready', 20, 'img-gone');
    await world.launcher([{ ...demo, 'launch-retries': 1 }]);
    expect(imageOf(await fulfilled(await submit()))).toBe(`${UPLOADS}/0000000001`);
    expect(world.records(UPLOADS).get('0000000002')).toMatchObject({ state: 'ready', listed: false });
    expect(world.cloud.existingInstances().map(({ image }) => image)).toEqual(['image-0000000001']);
    expect(imageOf(await fulfilled(await submit({ reuse: false })))).toBe(`${UPLOADS}/0000000001`);
  });

  it('is launched again if the list of images cannot be read after the cloud has rejected an image', async () => {
    await upload('0000000001', 'ready', 10);
    await upload('0000000002', 'ready', 20, 'img-gone');
    let asked = 0;
    const failingList = faultyDriver(world.cloud, ({ images }) => ({
      images: {
        uploadImage: (request) => images!.uploadImage(request),
        deleteImage: (...args) => images!.deleteImage(...args),
        listImages: (call) => {
          asked += 1;
          return asked === 1 ? Promise.reject(new Error('the driver has a defect')) : images!.listImages(call);
        },
      },
    }));
    await world.launcher([demo], 'launcher1', failingList);
    expect(imageOf(await fulfilled(await submit()))).toBe(`${UPLOADS}/0000000001`);
    expect(asked).toBe(2);
  });

  it('uses the newest upload if the cloud rejects its image but lists it', async () => {
    const tags = { nodepool_provider_name: 'demo' };
    const spec = { name: 'debian', format: 'raw', size: 1, md5: null, sha256: null, tags, properties: {} };
    const queued = await world.cloud.createImage(spec);
    await upload('0000000001', 'ready', 10);
    await upload('0000000002', 'ready', 20, queued.id);
    await world.launcher([demo]);
    const id = await submit();
    await world.inState(id, 'failed');
    expect(world.records(UPLOADS).get('0000000002')).not.toHaveProperty('listed');
  });

  it('has no ready nodes before its image is ready, and gets them as soon as it is', async () => {
    const keep: Partial<NodepoolConfig> = {
      labels: new Map([['small', { name: 'small', minReady: 1, maxReadyAgeMs: Infinity, maxWaitMs: Infinity }]]),
    };
    await world.launcher([demo], 'launcher1', keep);
    await world.clock.advance(120_000);
    expect(world.nodes().size).toBe(0);
    await upload('0000000001', 'ready', 20);
    await world.until('it is ready', () => [...world.nodes().values()].some(({ state }) => state === 'ready'));
  });
});

describe('a change of a disk image', () => {
  const debian = (username: string): DiskImageConfig => ({ ...DEBIAN, username });

  it('applies to later launches', async () => {
    const { launcher } = await world.launcher([demo], 'launcher1', {
      diskImages: new Map([['debian', debian('zuul')]]),
    });
    await upload('0000000001', 'ready', 1);
    const before = await fulfilled(await submit());
    await world.during(launcher.apply(world.config([demo], { diskImages: new Map([['debian', debian('ci')]]) })));
    const after = await fulfilled(await submit());
    expect(world.nodes().get(before)).toMatchObject({ username: 'zuul' });
    expect(world.nodes().get(after)).toMatchObject({ username: 'ci' });
  });

  it('that only affects its builds stops no provider', async () => {
    const start = { ...debian('zuul'), elements: ['vm'] };
    const { launcher } = await world.launcher([demo], 'launcher1', { diskImages: new Map([['debian', start]]) });
    const pools = (): unknown[] => [...world.records('/nodepool/components/pool').values()].map(({ id }) => id);
    const before = pools();
    const next = { ...start, elements: ['vm', 'cache'] };
    await world.during(launcher.apply(world.config([demo], { diskImages: new Map([['debian', next]]) })));
    await world.clock.advance(60_000);
    expect(pools()).toEqual(before);
  });
});
