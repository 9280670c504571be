/** The commands about images, builds and uploads. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
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

  it('says that no registered builder builds the image', async () => {
    const builder = (images: readonly string[]): Promise<unknown> => {
      const component = { hostname: 'nb01', kind: 'builder', state: 'running', version: '1', model_api: 0, images };
      const path = '/nodepool/components/builder/nb01';
      const data = Buffer.from(JSON.stringify(component));
      return world.finish(world.store.zooKeeper.create(path, data, { mode: 'ephemeral-sequential' }));
    };
    const noted = async (): Promise<string> => (await world.run('image-build', 'debian-12')).out.noted;
    await builder(['fedora']);
    await world.until(() => [...world.store.components.all('builder')].length === 1);
    expect(await noted()).toContain('no registered builder builds image debian-12 (nb01): add it');
    await builder(['debian-12']);
    await world.until(() => [...world.store.components.all('builder')].length === 2);
    expect(await noted()).not.toContain('no registered builder');
  });

  it('finds builders of the Python Nodepool, which register as stopped', async () => {
    // As recorded from a Python builder.
    const component =
      '{"hostname": "vm", "kind": "builder", "model_api": 0, "state": "stopped", "version": "11.0.0 a0d1eb502"}';
    const path = '/nodepool/components/builder/vm';
    await world.finish(world.store.zooKeeper.create(path, Buffer.from(component), { mode: 'ephemeral-sequential' }));
    await world.until(() => [...world.store.components.all('builder')].length === 1);
    expect((await world.run('image-build', 'debian-12')).out.noted).not.toMatch(/no (registered )?builder/);
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
