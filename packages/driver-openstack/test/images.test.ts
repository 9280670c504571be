/** Disk images: the upload, its verification, and the cleanup of failed ones. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@nodepool/core';
import { callOn, failureOf } from '@nodepool/driver-kit';
import { ApiClient, textOf } from '@nodepool/simulated-openstack';
import { clientOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const data = Buffer.alloc(300_000, 'data of a disk image ');
const md5 = createHash('md5').update(data).digest('hex');

let open: OpenCloud;
let test: TestProvider;
let folder: string;
let file: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'image-'));
  file = join(folder, 'debian.raw');
  writeFileSync(file, data);
  open = await openCloud();
  // A builder's section has images and no pools.
  const { pools: _pools, ...builders } = section({ diskimages: [{ name: 'debian' }] });
  test = await TestProvider.started(open, builders);
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
  rmSync(folder, { recursive: true });
});

const ours = (): readonly { readonly name: string; readonly status: string }[] =>
  open.cloud.inspect.images().filter(({ name }) => name.startsWith('debian'));

describe('an upload', () => {
  it('creates an image with the data, the properties and the tags', async () => {
    const externalId = await test.upload(file, {
      md5,
      metadata: { hw_disk_bus: 'scsi', min_disk: '10', protected: 'False' },
    });
    const [image] = open.cloud.inspect.images().filter(({ id }) => id === externalId);
    expect(image).toMatchObject({ name: 'debian-1', status: 'active', size: data.length, md5 });
    expect(image?.properties).toMatchObject({
      hw_disk_bus: 'scsi',
      nodepool_upload_id: '0000000001',
      nodepool_provider_name: 'test',
      'owner_specified.openstack.md5': md5,
    });
  });

  it('fails and leaves nothing behind if the image has another SHA-512 than the file, and no MD5', async () => {
    open.cloud.configure({ damagesImages: true });
    const failure = await failureOf(test.upload(file));
    expect(failure).toMatchObject({ code: 'transient', message: expect.stringContaining('was damaged') });
    expect(ours()).toEqual([]);
  });

  it('is refused by name if the cloud accepts images only by tasks', async () => {
    const { env } = open.environment;
    const cloudsYaml = join(folder, 'clouds.yaml');
    const text = readFileSync(env['OS_CLIENT_CONFIG_FILE'] ?? '', 'utf8');
    writeFileSync(cloudsYaml, text.replaceAll('"interface":', '"image_api_use_tasks": true, "interface":'));
    const environment = { ...open.environment, env: { OS_CLIENT_CONFIG_FILE: cloudsYaml } };
    const tasks = await TestProvider.started({ ...open, environment }, section({ diskimages: [{ name: 'debian' }] }));
    expect(await failureOf(tasks.upload(file))).toMatchObject({
      code: 'configuration',
      outcome: 'not-applied',
      message: expect.stringMatching(/^cloud real in .*clouds\.yaml has image_api_use_tasks/),
    });
    await tasks.launch();
    await tasks.stop();
    expect(ours()).toEqual([]);
  });

  it('is refused if the file has changed since its build', async () => {
    const failure = await failureOf(test.upload(file, { md5: '0'.repeat(32) }));
    expect(failure.message).toContain('differs from the build');
    expect(ours()).toEqual([]);
  });

  it('fails and leaves nothing behind if its connection breaks', async () => {
    open.cloud.faults.add({ on: 'image.images.upload', fault: { kind: 'cut', when: 'before' } });
    expect(await failureOf(test.upload(file))).toMatchObject({ code: 'transient' });
    expect(ours()).toEqual([]);
  });

  it('fails and leaves nothing behind if a proxy answers with a page of its own instead of receiving the data', async () => {
    open.cloud.faults.add({ on: 'image.images.upload', fault: { kind: 'proxy', status: 200 } });
    const deadline = open.time.clock.monotonic() + 120_000;
    const failure = await failureOf(test.upload(file, { deadline }));
    expect(failure).toMatchObject({ code: 'transient', outcome: 'unknown' });
    expect(ours()).toEqual([]);
  });

  it('ends at its deadline if the cloud never completes the image', async () => {
    open.cloud.faults.add({ on: 'image.images.upload', fault: { kind: 'status', status: 204, body: '' } });
    const deadline = open.time.clock.monotonic() + 120_000;
    expect(await failureOf(test.upload(file, { deadline }))).toMatchObject({ code: 'timeout', outcome: 'applied' });
    expect(ours()).toEqual([]);
  });

  it('fails and leaves nothing behind if the answer to the creation of the image is lost', async () => {
    open.cloud.faults.add({ on: 'image.images.create', fault: { kind: 'cut', when: 'after' } });
    expect(await failureOf(test.upload(file))).toMatchObject({ code: 'transient' });
    expect(ours()).toEqual([]);
  });

  it.each([429, 500, 503])('is not lost if the cloud answers one query for its state with %i', async (status) => {
    open.cloud.faults.add({ on: 'image.images.show', fault: { kind: 'status', status } });
    const externalId = await test.upload(file, { md5 });
    expect(open.cloud.inspect.images().find(({ id }) => id === externalId)).toMatchObject({ status: 'active' });
  });

  it('starts again from the beginning if its token is refused', async () => {
    open.cloud.faults.add({ on: 'image.images.upload', fault: { kind: 'status', status: 401 } });
    const externalId = await test.upload(file, { md5 });
    expect(open.cloud.inspect.images().find(({ id }) => id === externalId)).toMatchObject({ size: data.length, md5 });
  });

  it('reads only a small part of a large file ahead', async () => {
    writeFileSync(file, '');
    truncateSync(file, 256 * 2 ** 20);
    open.cloud.faults.add({ on: 'image.images.upload', fault: { kind: 'hang', when: 'before' } });
    let sent = 0;
    const progress = (bytes: number): void => {
      sent = bytes;
    };
    const deadline = open.time.clock.monotonic() + 60_000;
    expect(await failureOf(test.upload(file, { progress, deadline }))).toMatchObject({ code: 'timeout' });
    expect(sent).toBeLessThan(16 * 2 ** 20);
    expect(ours()).toEqual([]);
  });

  it.each([403, 503])('that fails with %i deletes only its own image, and logs the deletion', async (status) => {
    const inService = await test.upload(file, { tags: { ...test.imageTags, nodepool_build_id: 'b0' } });
    const elsewhere = await test.upload(file, { tags: { ...test.imageTags, nodepool_installation: 'production' } });
    open.cloud.faults.add({ on: 'image.images.upload', fault: { kind: 'status', status } });
    const notes: unknown[] = [];
    const info = (message: string, fields: unknown): void => void notes.push([message, fields]);
    await failureOf(test.upload(file, { log: { ...silentLogger, info } }));
    const left = open.cloud.inspect.images().filter(({ name }) => name.startsWith('debian'));
    expect(left.map(({ id }) => id).sort()).toEqual([inService, elsewhere].sort());
    expect(notes).toMatchObject([
      [
        'Deleting in the cloud',
        { kind: 'image', name: 'debian-1', because: expect.stringMatching(/^its upload failed: /) },
      ],
    ]);
  });

  it('fails with quota if it exceeds the quota', async () => {
    const body =
      '<html><body><h1>413 Request Entity Too Large</h1>The request exceeds the quota for images</body></html>';
    open.cloud.faults.add({ on: 'image.images.upload', fault: { kind: 'status', status: 413, body } });
    expect(await failureOf(test.upload(file))).toMatchObject({ code: 'quota' });
    expect(ours()).toEqual([]);
  });
});

describe('the deletion of an image', () => {
  it('fails, and succeeds later, if a proxy answers with a page of its own', async () => {
    const externalId = await test.upload(file);
    const remove = (): Promise<void> => test.end(test.provider.images!.deleteImage(externalId, test.call()));
    open.cloud.faults.add({ on: 'image.images.delete', fault: { kind: 'proxy', status: 200 } });
    expect(await failureOf(remove())).toMatchObject({
      code: 'transient',
      outcome: 'unknown',
      message: expect.stringMatching(
        /^image: DELETE image: .*is this the endpoint of an OpenStack service\? \(answer of /,
      ),
    });
    expect(ours()).toHaveLength(1);
    await remove();
    expect(ours()).toEqual([]);
  });
});

describe('the list of images', () => {
  it('contains only images of this provider', async () => {
    const externalId = await test.upload(file);
    const images = await test.end(test.provider.images!.listImages(callOn(open.time.clock)));
    expect(images.map((image) => [image.externalId, image.ready])).toEqual([[externalId, true]]);
    expect(images[0]?.tags).toEqual(test.imageTags);
  });

  it('lacks images that a person creates from a volume, which have the tags of the image of the volume', async () => {
    const externalId = await test.upload(file);
    const person = await ApiClient.logIn(open.cloud.cloudsYaml, 'real');
    const volume = { name: 'of-a-person', size: 1, imageRef: externalId };
    const id = textOf((await person.post('volume', '/volumes', { volume })).member('volume')['id']);
    const action = { 'os-volume_upload_image': { image_name: 'of-a-volume' } };
    expect((await person.post('volume', `/volumes/${id}/action`, action)).status).toBe(202);
    const copy = open.cloud.inspect.images().find(({ name }) => name === 'of-a-volume');
    expect(copy?.properties).toMatchObject(test.imageTags);
    const images = await test.end(test.provider.images!.listImages(callOn(open.time.clock)));
    expect(images.map((image) => image.externalId)).toEqual([externalId]);
    expect((await test.cleanUpRound(() => true)).map((resource) => resource.externalId)).toEqual([externalId]);
  });

  it('contains images that the operator has shared with other projects', async () => {
    const client = clientOf(open);
    const shared = { name: 'shared', disk_format: 'raw', container_format: 'bare', visibility: 'shared' };
    const { id } = await client.image.createImage({ ...shared, ...test.imageTags }, callOn(open.time.clock));
    await client.close();
    const images = await test.end(test.provider.images!.listImages(callOn(open.time.clock)));
    expect(images.map(({ externalId }) => externalId)).toEqual([id]);
  });
});
