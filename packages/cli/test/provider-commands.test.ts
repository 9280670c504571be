/** The commands about the records and the images of one provider. */

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { newReview } from '@nodepool/core';
import { IMAGE_CONFIG, World } from './world.js';

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
  await world.writeConfig(IMAGE_CONFIG);
});

afterEach(() => world.stop());

describe('nodepool info', () => {
  it('shows the uploads and the nodes of a provider', async () => {
    const build = await world.build('debian-12', 'b1');
    const uploads = [await world.upload(build, 'cloud'), await world.upload(build, 'cloud')];
    const node = await world.node({});
    await world.node({ provider: 'other' });
    const { code, out } = await world.run('info', 'cloud');
    expect(code).toBe(0);
    const ids = uploads.map(({ id }) => id).join(',');
    expect(out.printed.split('\n')).toEqual([
      'ZooKeeper data for provider cloud',
      '',
      'Image data:',
      '+------------+----------+-----------------------+',
      '| Image Name | Build ID | Upload IDs            |',
      '+------------+----------+-----------------------+',
      `| debian-12  | b1       | ${ids} |`,
      '+------------+----------+-----------------------+',
      '',
      'Nodes:',
      '+------------+-----------+',
      '| ID         | Server ID |',
      '+------------+-----------+',
      `| ${node} | server-1  |`,
      '+------------+-----------+',
    ]);
    expect(JSON.parse((await world.run('info', 'cloud', '--format', 'json')).out.printed)).toEqual({
      provider: 'cloud',
      uploads: [{ image: 'debian-12', build: 'b1', uploads: uploads.map(({ id }) => id) }],
      nodes: [{ id: node, server_id: 'server-1', state: 'ready' }],
      out_of_service: [],
    });
    expect((await world.run('info', 'cloud', '--format', 'name')).out.printed).toBe('cloud');
  });

  it('shows machines that are out of service, which a list of nodes indicates', async () => {
    const outage = { labels: ['small', 'arm'], slots: 2, reason: 'port 22 of rack1 accepted no connection', since: 0 };
    await world.node({});
    await world.pool(['small'], { out_of_service: [{ machine: 'rack1:22 (user zuul)', ...outage }] });
    const { out } = await world.run('info', 'cloud');
    expect(out.printed.split('\n').slice(-6)).toEqual([
      'Machines out of service:',
      '+----------------------+------+-----------+-------+----------+--------------------------+-----------------------------------------+',
      '| Machine              | Pool | Labels    | Slots | Launcher | Since                    | Reason                                  |',
      '+----------------------+------+-----------+-------+----------+--------------------------+-----------------------------------------+',
      '| rack1:22 (user zuul) | main | small,arm | 2     | host     | 1970-01-01T00:00:00.000Z | port 22 of rack1 accepted no connection |',
      '+----------------------+------+-----------+-------+----------+--------------------------+-----------------------------------------+',
    ]);
    const { out: data } = await world.run('info', 'cloud', '--format', 'json');
    expect(JSON.parse(data.printed)).toMatchObject({
      out_of_service: [{ machine: 'rack1:22 (user zuul)', pool: 'main', launcher: 'host', reason: outage.reason }],
    });
    expect((await world.run('list')).out.noted).toBe('1 machine is out of service, see: nodepool info cloud');
    // A second launcher of the pool can use the machine, and keeps its nodes ready.
    await world.pool(['small'], { hostname: 'other' });
    expect((await world.run('list')).out.noted).toBe('');
  });

  it('suggests a similar name for an unknown provider', async () => {
    await world.node({});
    const { code, out } = await world.run('info', 'colud');
    expect([code, out.noted]).toEqual([
      1,
      'nodepool: there is no provider "colud" in the configuration or in ZooKeeper: did you mean "cloud"?',
    ]);
  });
});

describe('nodepool erase', () => {
  async function provider(): Promise<string> {
    await world.upload(await world.build('debian-12', 'b1'), 'cloud');
    return world.node({});
  }

  const left = (): number =>
    [...world.store.nodes.all()].length + [...world.store.images.uploads({ provider: 'cloud' })].length;

  it('deletes uploads and nodes of the provider after its name was typed', async () => {
    await provider();
    const other = await world.node({ provider: 'other' });
    await world.pool(['small']);
    world.answer = 'cloud';
    const { code, out } = await world.run('erase', 'cloud');
    expect(world.questions).toEqual([expect.stringContaining('1 uploads and 1 nodes of provider cloud')]);
    expect(code).toBe(0);
    expect(out.noted).toContain('provider cloud is still served by host');
    expect(out.noted).toContain('2 records are erased');
    await world.until(() => left() === 1);
    expect(world.stateOf(other)).toBe('ready');
    expect(world.store.images.builds('debian-12')).toHaveLength(1);
    // The Python Nodepool lists each build that has this znode as one of the provider.
    const below = await world.finish(
      world.store.zooKeeper.exists('/nodepool/images/debian-12/builds/b1/providers/cloud'),
    );
    expect(below).toBeUndefined();
  });

  it.each([
    ['another name was typed', 'clout'],
    ['the command has no terminal', undefined],
  ])('deletes nothing when %s', async (_why, answer) => {
    await provider();
    world.answer = answer;
    const { code, out } = await world.run('erase', 'cloud');
    expect([code, out.noted]).toEqual([1, expect.stringContaining('nothing was erased')]);
    expect(left()).toBe(2);
  });

  it('with --force does not ask, and skips locked records', async () => {
    const id = await provider();
    await world.finish(world.store.nodes.lock(id));
    const { code, out } = await world.run('erase', 'cloud', '--force');
    expect(code).toBe(1);
    expect(out.noted).toContain('1 records are erased');
    expect(out.noted).toContain(
      `these records are locked by other programs and remain; try again later:\n  node ${id}`,
    );
    await world.until(() => left() === 1);
  });

  it('reports that there are no records', async () => {
    await world.writeConfig(IMAGE_CONFIG.replace('providers: []', 'providers: [{name: cloud, driver: toy}]'));
    const { code, out } = await world.run('erase', 'cloud');
    expect([code, out.noted]).toEqual([0, 'ZooKeeper has no records of provider cloud']);
  });
});

describe('nodepool alien-image-list', () => {
  /** Installs a driver whose cloud has an image per entry: its id, and the tags of its upload. */
  async function cloud(images: string): Promise<void> {
    const place = join(dirname(world.configFile), 'node_modules', '@nodepool', 'driver-toy');
    await mkdir(place, { recursive: true });
    const manifest = {
      name: '@nodepool/driver-toy',
      version: '1.0.0',
      main: 'i.cjs',
      nodepool: { driver: 'toy', api: 1 },
    };
    await writeFile(join(place, 'package.json'), JSON.stringify(manifest));
    await writeFile(
      join(place, 'i.cjs'),
      `exports.driver = {
        name: 'toy',
        schema: { type: 'object' },
        getProviderConfig: (section) => ({ name: section.name, driver: 'toy', pools: new Map(), diskImages: new Map() }),
        getProvider: (config) => ({ config, start: async () => {}, stop() {}, join: async () => {}, images: { listImages: async () => (${images}) } }),
      };`,
    );
    await world.writeConfig(IMAGE_CONFIG.replace('providers: []', 'providers: [{name: cloud, driver: toy}]'));
  }

  const image = (id: string, upload: string, provider = 'cloud', installation?: string): object => ({
    externalId: id,
    name: `name of ${id}`,
    ready: true,
    tags: {
      nodepool_provider_name: provider,
      nodepool_build_id: 'b1',
      nodepool_upload_id: upload,
      nodepool_installation: installation,
    },
  });

  it('lists images with Nodepool’s tags and without a record', async () => {
    const build = await world.build('debian-12', 'b1');
    const ready = await world.upload(build, 'cloud');
    const uploading = await world.upload(build, 'cloud', { state: 'uploading', external_id: null });
    await cloud(
      JSON.stringify([
        image('image-1', ready.id),
        image('image-2', uploading.id),
        image('image-3', '0000000099'),
        image('image-4', '0000000099', 'other'),
        image('image-5', '0000000099', 'cloud', 'another-installation'),
      ]),
    );
    const { code, out } = await world.run('alien-image-list', 'cloud');
    expect([code, out.printed.split('\n').slice(1, -1)]).toEqual([
      0,
      [
        '| Provider | Name            | Image ID |',
        expect.stringMatching(/^\+/),
        '| cloud    | name of image-3 | image-3  |',
      ],
    ]);
  });

  it('does not list the images of uploads in any stage of their tests', async () => {
    const build = await world.build('debian-12', 'b1');
    const stages = ['uploaded', 'launch-tested', 'canary', 'promoted', 'rejected', 'revoked'] as const;
    const images: object[] = [image('image-99', '0000000099')];
    for (const [index, stage] of stages.entries()) {
      const review = { ...newReview(1, 'builder', 'uploaded'), stage };
      const { id } = await world.upload(build, 'cloud', { external_id: `image-${index}`, review });
      images.push(image(`image-${index}`, id));
    }
    await cloud(JSON.stringify(images));
    const { out } = await world.run('alien-image-list', 'cloud', '--format', 'name');
    expect(out.printed.match(/image-\d+/g)).toEqual(['image-99']);
  });

  it('reports unreachable clouds, and exits with 1', async () => {
    await cloud(`(() => { throw new Error('the cloud is on fire'); })()`);
    const { code, out } = await world.run('alien-image-list');
    expect([code, out.printed.split('\n')[1]]).toEqual([1, '| Provider | Name | Image ID |']);
    expect(out.noted).toContain('the list is not complete:\n  provider cloud: the cloud is on fire');
    const broken = await world.run('alien-image-list', 'clowd');
    expect(broken.out.noted).toContain('did you mean "cloud"?');
  });
});
