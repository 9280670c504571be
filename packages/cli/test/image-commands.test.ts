import { execFile } from 'node:child_process';
import { mkdir, open, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { newReview } from '@nodepool/core';
import { World } from './world.js';

let world: World;

const CONFIG = `
zookeeper-servers: [{host: localhost, port: 2181}]
images-dir: /images
labels: []
diskimages:
  - {name: base, abstract: true, elements: [vm]}
  - {name: debian-12, parent: base}
  - {name: frozen, parent: base, pause: true}
providers: []
`;

beforeEach(async () => {
  world = new World();
  await world.start();
  await world.writeConfig(CONFIG);
});

afterEach(() => world.stop());

describe('the lists of images', () => {
  it('show builds, uploads, pauses and build requests', async () => {
    const build = await world.build('debian-12', 'b1');
    const upload = await world.upload(build, 'cloud', { state: 'uploading', progress: 30 });
    await world.finish(world.store.images.requestBuild('debian-12'));
    const uploads = await world.run('image-list');
    expect(uploads.code).toBe(0);
    expect(uploads.out.printed).toContain(
      `| b1       | ${upload.id} | cloud    | debian-12 | debian-1            | image-1           | uploading | 00:00:00:00 |`,
    );
    expect((await world.run('image-list', '--detail')).out.printed).toContain('| 30 %     |');
    expect((await world.run('dib-image-list')).out.printed).toContain(
      '| debian-12-b1 | debian-12 | nb01    | qcow2   | ready | 00:00:00:00 |',
    );
    expect(JSON.parse((await world.run('image-status', '--format', 'json')).out.printed)).toEqual([
      expect.objectContaining({ image: 'debian-12', paused: false, build_request: 'pending' }),
    ]);
  });

  it('show a paused image in the format that existing scripts parse', async () => {
    await world.run('image-pause', 'debian-12');
    await world.until(() => world.store.images.paused('debian-12'));
    await world.finish(world.store.images.requestBuild('other'));
    const { printed } = (await world.run('image-status')).out;
    expect(printed).toContain('| debian-12 | True   |               |                   |');
    expect(printed).toContain('| other     | False  | pending       | 00:00:00:00       |');
  });

  it('show the last failed build with its time and its log until a newer build is ready', async () => {
    const lock = (await world.finish(world.store.images.tryLockBuilding('debian-12')))!;
    const log = '/var/log/nodepool/builds/debian-12-b1.log';
    const time = world.clock.now() / 1000 - 600;
    const failure = { build: 'b1', builder: 'nb01', reason: 'exit', message: 'the build ended with status 1', log };
    await world.finish(lock.recordFailure({ time, ...failure }));
    await world.finish(lock.release());
    await world.until(() => world.store.images.lastBuildFailure('debian-12') !== undefined);
    const said = `the last build of image debian-12 failed 00:00:10:00 ago: the build ended with status 1; its log is ${log} on nb01`;
    for (const list of ['dib-image-list', 'image-status']) {
      const { code, out } = await world.run(list);
      expect([list, code, out.noted]).toEqual([list, 0, said]);
      expect(out.printed).not.toContain('Failure');
    }
    expect((await world.run('image-status', '--detail')).out.printed).toContain(
      `| the build ended with status 1 | 00:00:10:00      | nb01                 | ${log} |`,
    );
    expect(JSON.parse((await world.run('image-status', '--format', 'json')).out.printed)).toEqual([
      expect.objectContaining({ last_failure_age: time, last_failure_builder: 'nb01', last_failure_log: log }),
    ]);
    await world.build('debian-12', 'b2');
    await world.until(() => world.store.images.builds('debian-12').length === 1);
    expect((await world.run('dib-image-list')).out.noted).toBe('');
    expect((await world.run('image-status', '--detail')).out.printed).not.toContain('status 1');
  });

  it('report unreadable records', async () => {
    await world.finish(world.store.images.requestBuild('debian-12'));
    for (const path of ['', '/b9']) {
      await world.finish(world.store.zooKeeper.create(`/nodepool/images/debian-12/builds${path}`, Buffer.from('?')));
    }
    for (const list of ['image-list', 'dib-image-list']) {
      const { code, out } = await world.run(list);
      expect([code, out.noted]).toEqual([
        0,
        expect.stringContaining('not listed: /nodepool/images/debian-12/builds/b9'),
      ]);
    }
  });
});

describe('nodepool image-build', () => {
  it('requests a build, and again after a failure, which ends the wait of the builder', async () => {
    const first = await world.run('image-build', 'debian-12');
    expect([first.code, first.out.noted]).toEqual([
      0,
      expect.stringContaining('a build of image debian-12 is requested'),
    ]);
    expect(first.out.noted).toContain('no builder is registered');
    await world.until(() => world.store.images.buildRequested('debian-12'));
    const requestedAt = world.store.images.buildRequestedAt('debian-12');
    await world.clock.advance(1000);
    const second = await world.run('image-build', 'debian-12');
    expect([second.code, second.out.noted]).toEqual([0, expect.stringContaining('is requested again')]);
    await world.until(() => world.store.images.buildRequestedAt('debian-12') !== requestedAt);
    await world.finish(world.store.images.tryLockBuilding('debian-12'));
    const third = await world.run('image-build', 'debian-12');
    expect([third.code, third.out.noted]).toEqual([0, expect.stringContaining('was already requested and is running')]);
  });

  it.each([
    ['debian12', 'the configuration has no disk image "debian12": did you mean "debian-12"?'],
    ['xyz', 'the configuration has no disk image "xyz"'],
    ['base', 'disk image "base" is abstract'],
    ['frozen', 'image frozen is paused by the configuration'],
  ])('rejects %s', async (image, reason) => {
    const { code, out } = await world.run('image-build', image);
    expect([code, out.noted]).toEqual([1, expect.stringContaining(reason)]);
    expect(world.store.images.buildRequested(image)).toBe(false);
  });

  it('requests a build of an image that an operator paused, and prints when it is built', async () => {
    expect((await world.run('image-pause', 'debian-12')).code).toBe(0);
    const { code, out } = await world.run('image-build', 'debian-12');
    expect([code, out.noted]).toEqual([0, expect.stringContaining('nodepool image-unpause debian-12')]);
    await world.until(() => world.store.images.buildRequested('debian-12'));
  });

  it('finds builders of the Python Nodepool, which register as stopped', async () => {
    // As recorded from a Python builder.
    const component =
      '{"hostname": "vm", "kind": "builder", "model_api": 0, "state": "stopped", "version": "11.0.0 a0d1eb502"}';
    const path = '/nodepool/components/builder/vm';
    await world.finish(world.store.zooKeeper.create(path, Buffer.from(component), { mode: 'ephemeral-sequential' }));
    await world.until(() => [...world.store.components.all('builder')].length === 1);
    expect((await world.run('image-build', 'debian-12')).out.noted).not.toContain('no builder is registered');
  });
});

describe('nodepool image-pause and image-unpause', () => {
  it('accept an image that is only in ZooKeeper, and reject an unknown one', async () => {
    await world.build('gone', 'b1');
    expect((await world.run('image-pause', 'gone')).code).toBe(0);
    await world.until(() => world.store.images.paused('gone'));
    expect((await world.run('image-unpause', 'gone')).out.noted).toBe('image gone is unpaused');
    await world.until(() => !world.store.images.paused('gone'));
    expect((await world.run('image-unpause', 'gone')).out.noted).toBe('image gone was not paused');
    for (const command of ['image-pause', 'image-unpause']) {
      const { code, out } = await world.run(command, 'debian-21');
      expect([code, out.noted]).toEqual([1, expect.stringContaining('did you mean "debian-12"?')]);
    }
  });

  it('report that the configuration still pauses the image', async () => {
    const { code, out } = await world.run('image-unpause', 'frozen');
    expect([code, out.noted]).toEqual([0, expect.stringContaining('image frozen stays paused')]);
  });
});

describe('nodepool image-delete', () => {
  const args = (upload: { readonly id: string }, over: Record<string, string> = {}): string[] => {
    const options = { provider: 'cloud', image: 'debian-12', 'upload-id': upload.id, 'build-id': 'b1', ...over };
    return ['image-delete', ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])];
  };

  it('marks the upload as deleting, unlocked, for a builder', async () => {
    const upload = await world.upload(await world.build('debian-12', 'b1'), 'cloud');
    const { code, out } = await world.run(...args(upload, { 'upload-id': String(Number(upload.id)) }));
    expect([code, out.noted]).toEqual([0, expect.stringContaining('will be deleted by a builder')]);
    await world.until(() => world.store.images.upload(upload)?.state === 'deleting');
    await world.until(() => !world.store.images.isUploadLocked(upload));
  });

  it('rejects uploads that are in progress, locked or missing', async () => {
    const build = await world.build('debian-12', 'b1');
    const uploading = await world.upload(build, 'cloud', { state: 'uploading' });
    const refused = await world.run(...args(uploading));
    expect([refused.code, refused.out.noted]).toEqual([1, expect.stringContaining('is in progress')]);
    const ready = await world.upload(build, 'cloud');
    const handle = (await world.finish(world.store.images.tryLockUpload(ready)))!;
    const busy = await world.run(...args(ready));
    expect([busy.code, busy.out.noted]).toEqual([1, expect.stringContaining('is locked by a builder')]);
    await world.finish(handle.release());
    const unknown = await world.run(...args(ready, { provider: 'other' }));
    expect([unknown.code, unknown.out.noted]).toEqual([1, expect.stringContaining('there is no upload')]);
    expect(world.store.images.upload(ready)?.state).toBe('ready');
  });
});

describe('nodepool dib-image-delete', () => {
  it('marks the build as deleting for a builder, and prints what is deleted with it', async () => {
    const build = await world.build('debian-12', 'b1');
    await world.upload(build, 'cloud');
    const { code, out } = await world.run('dib-image-delete', 'debian-12-b1');
    expect(code).toBe(0);
    expect(out.noted).toBe('build debian-12-b1 and its files on nb01 will be deleted, after its uploads to cloud');
    await world.until(() => world.store.images.build(build)?.state === 'deleting');
    await world.until(() => !world.store.images.isBuildLocked(build));
  });

  it.each([
    ['debian-12-b1', 'is in progress'],
    ['debian-12-b2', 'there is no build "debian-12-b2"; `nodepool dib-image-list` lists the existing ones: did you'],
    ['b1', 'there is no build "b1"'],
    ['', 'there is no build ""'],
  ])('rejects %j during the build of debian-12-b1', async (id, reason) => {
    const build = await world.build('debian-12', 'b1', { state: 'building' });
    const { code, out } = await world.run('dib-image-delete', id);
    expect([code, out.noted]).toEqual([1, expect.stringContaining(reason)]);
    expect(world.store.images.build(build)?.state).toBe('building');
  });
});

describe('nodepool export-image-data and import-image-data', () => {
  it('back up and restore the records', async () => {
    const file = join(dirname(world.configFile), 'images.json');
    const build = await world.build('debian-12', 'b1');
    const upload = await world.upload(build, 'cloud');
    const saved = await world.run('export-image-data', file);
    expect([saved.code, saved.out.noted]).toEqual([0, `Saved records of images: 2, in ${file}`]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(Object.keys(Object(JSON.parse(await readFile(file, 'utf8'))) as object)).toEqual([
      '/nodepool/images/debian-12/builds/b1',
      `/nodepool/images/debian-12/builds/b1/providers/cloud/images/${upload.id}`,
    ]);
    expect((await world.run('erase', 'cloud', '--force')).code).toBe(0);
    await world.until(() => world.store.images.upload(upload) === undefined);
    const restored = await world.run('import-image-data', file);
    expect([restored.code, restored.out.noted]).toEqual([
      0,
      'Restored records of images: 1; records that existed already: 1',
    ]);
    await world.until(() => world.store.images.upload(upload)?.external_id === 'image-1');
  });

  it('reject an invalid file with the reason', async () => {
    const folder = dirname(world.configFile);
    const bad = join(folder, 'bad.json');
    await writeFile(bad, '{"/nodepool/nodes/1": ""}');
    const damaged = join(folder, 'damaged.json');
    await writeFile(damaged, '{');
    for (const [args, reason] of [
      [['import-image-data', join(folder, 'missing.json')], 'cannot be read'],
      [['import-image-data', bad], `${bad}: nothing can be imported:\n  /nodepool/nodes/1: is not the path of a znode`],
      [['import-image-data', damaged], `${damaged}: it is not JSON; expected the output of export-image-data`],
      [['export-image-data', folder], 'cannot be written'],
      [
        ['export-image-data', join(folder, 'missing', 'images.json')],
        "open '" + join(folder, 'missing', 'images.json'),
      ],
    ] as const) {
      const { code, out } = await world.run(...args);
      expect([code, out.noted]).toEqual([1, expect.stringContaining(reason)]);
      expect(out.noted).not.toContain('-d for details');
    }
  });
});

describe('nodepool export-image-data', () => {
  it('replaces an earlier export at once, and retains its permissions and the link to it', async () => {
    const folder = join(dirname(world.configFile), 'backups');
    const [link, file] = [join(folder, 'latest.json'), join(folder, 'images.json')];
    await mkdir(folder);
    await writeFile(file, 'the earlier export', { mode: 0o640 });
    await symlink('images.json', link);
    const reader = await open(file);
    await world.build('debian-12', 'b1');

    expect((await world.run('export-image-data', link)).code).toBe(0);

    expect(await reader.readFile('utf8')).toBe('the earlier export');
    await reader.close();
    expect(Object.keys(Object(JSON.parse(await readFile(file, 'utf8'))) as object)).toHaveLength(1);
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readlink(link)).toBe('images.json');
    expect(await readdir(folder)).toEqual(['images.json', 'latest.json']);
  });

  it('exports to the target of a link to a missing file', async () => {
    const folder = dirname(world.configFile);
    await symlink('images.json', join(folder, 'latest.json'));

    expect((await world.run('export-image-data', join(folder, 'latest.json'))).code).toBe(0);

    expect(JSON.parse(await readFile(join(folder, 'images.json'), 'utf8'))).toEqual({});
    expect(await readlink(join(folder, 'latest.json'))).toBe('images.json');
  });

  it('exports to a pipe', async () => {
    const pipe = join(dirname(world.configFile), 'pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const content = readFile(pipe, 'utf8');

    expect((await world.run('export-image-data', pipe)).code).toBe(0);

    expect(JSON.parse(await content)).toEqual({});
    expect((await stat(pipe)).isFIFO()).toBe(true);
  });
});

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
    await world.writeConfig(CONFIG.replace('providers: []', 'providers: [{name: cloud, driver: toy}]'));
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
    await world.writeConfig(CONFIG.replace('providers: []', 'providers: [{name: cloud, driver: toy}]'));
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
