/** Uploads of disk images by each method, copies between regions, and deletions. */

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { DeregisterImageCommand, EC2Client } from '@aws-sdk/client-ec2';
import { BUCKET, REGION } from '@nodepool/simulated-aws';
import { failureOf } from '@nodepool/driver-kit';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const MIB = 1024 * 1024;

let open: OpenCloud;
let folder: string;
let file: string;
const started: TestProvider[] = [];

beforeEach(async () => {
  open = await openCloud({ importMs: 60_000, resourceMs: 30_000 });
  folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
  file = join(folder, 'disk.raw');
  // Data, a gap of zeros, and data that does not fill its block.
  const disk = Buffer.alloc(11 * MIB + 1000);
  disk.fill('data', 0, 2 * MIB);
  disk.fill('end', 10 * MIB);
  writeFileSync(file, disk);
});

afterEach(async () => {
  for (const test of started.splice(0)) await test.stop();
  await open.close();
  rmSync(folder, { recursive: true });
});

async function provider(method: string, change: JsonObject = {}, image: JsonObject = {}): Promise<TestProvider> {
  const test = await TestProvider.started(
    open,
    section(open, {
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: [{ name: 'built', 'import-method': method, ...image }],
      ...change,
    }),
  );
  started.push(test);
  return test;
}

describe.each(['snapshot', 'ebs-direct', 'image'])('the import method %s', (method) => {
  it('creates an image and a snapshot with the tags of the upload, and leaves nothing else', async () => {
    const test = await provider(method, {}, { tags: { team: 'ci' } });
    const id = await test.upload(file, { image: 'built' });
    const { inspect } = open.cloud;
    const [image] = inspect.images();
    expect(image?.id).toBe(id);
    expect(image?.state).toBe('available');
    expect(image?.tags).toMatchObject(test.imageTags);
    const [snapshot] = inspect.snapshots();
    expect(snapshot?.tags).toMatchObject(test.imageTags);
    expect(image?.snapshotIds).toEqual([snapshot?.id]);
    expect(inspect.objects()).toEqual([]);
    expect(inspect.uploads()).toEqual([]);
    await test.end(test.provider.images?.deleteImage(id, test.call()) ?? Promise.resolve());
    expect(inspect.images()).toEqual([]);
    expect(inspect.snapshots()).toEqual([]);
  });

  it('leaves nothing behind after a failure of AWS, whose reason the error has', async () => {
    const test = await provider(method);
    const fault = { kind: 'task-failure', message: 'no valid partitions' } as const;
    const operations = {
      snapshot: 'ec2.ImportSnapshot',
      image: 'ec2.ImportImage',
      'ebs-direct': 'ebs.CompleteSnapshot',
    } as const;
    open.cloud.faults.add({ on: operations[method as keyof typeof operations], fault });
    const failure = await failureOf(test.upload(file, { image: 'built' }));
    if (method !== 'ebs-direct') expect(failure.message).toContain('no valid partitions');
    const { inspect } = open.cloud;
    expect(inspect.images()).toEqual([]);
    expect(inspect.snapshots()).toEqual([]);
    expect(inspect.objects()).toEqual([]);
  });
});

it.each(['snapshot', 'ebs-direct', 'image'])('lists that lag behind do not fail an upload (%s)', async (method) => {
  open.cloud.configure({ readLagMs: 40_000 });
  const test = await provider(method);
  const id = await test.upload(file, { image: 'built' });
  const [image] = open.cloud.inspect.images();
  expect(image?.id).toBe(id);
  expect(image?.tags).toMatchObject(test.imageTags);
  expect(open.cloud.inspect.snapshots()[0]?.tags).toMatchObject(test.imageTags);
});

it('EBS direct writes the file, without its zeros', async () => {
  const test = await provider('ebs-direct');
  await test.upload(file, { image: 'built' });
  const content = Buffer.alloc(11 * MIB + 1000);
  content.fill('data', 0, 2 * MIB);
  content.fill('end', 10 * MIB);
  const [snapshot] = open.cloud.inspect.snapshots();
  expect(snapshot?.sha256).toBe(createHash('sha256').update(content).digest('hex'));
  expect(open.cloud.calls.count('ebs.PutSnapshotBlock')).toBe(7);
});

it('a refused part and a refused block are sent again', async () => {
  const test = await provider('snapshot');
  open.cloud.faults.add({ on: 's3.UploadPart', fault: { kind: 'status', status: 500, code: 'InternalError' } });
  await test.upload(file, { image: 'built' });
  expect(open.cloud.inspect.images()).toHaveLength(1);
});

it.each(['snapshot', 'image'])('an import (%s) waits while the account runs as many as it may', async (method) => {
  const test = await provider(method);
  const operation = method === 'image' ? 'ec2.ImportImage' : 'ec2.ImportSnapshot';
  const fault = { kind: 'status', status: 400, code: 'ResourceCountLimitExceeded' } as const;
  open.cloud.faults.add({ on: operation, times: 30, fault });
  const before = open.time.clock.now();
  await test.upload(file, { image: 'built' });
  expect(open.cloud.calls.count(operation)).toBe(31);
  expect(open.time.clock.now() - before).toBeGreaterThan(30 * 60_000);
  expect(open.cloud.inspect.importTasks()).toHaveLength(1);
});

it.each(['snapshot', 'image'])(
  'an import (%s) is cancelled with its upload, and its file is deleted',
  async (method) => {
    const test = await provider(method);
    const describes = (): number => {
      const { calls } = open.cloud;
      return calls.count('ec2.DescribeImportImageTasks') + calls.count('ec2.DescribeImportSnapshotTasks');
    };
    const controller = new AbortController();
    const upload = test.upload(file, { image: 'built', signal: controller.signal });
    upload.catch(() => undefined);
    await open.time.until(() => describes() > 0, 60_000);
    controller.abort(new Error('the session is lost'));
    await failureOf(upload);
    await open.time.until(() => open.cloud.inspect.objects().length === 0, 60_000);
    expect(open.cloud.inspect.importTasks().map(({ state }) => state)).not.toContain('active');
    expect(open.cloud.inspect.images()).toEqual([]);
  },
);

it('progress grows up to the size of the file, and continues while AWS works', async () => {
  const test = await provider('snapshot');
  const sent: number[] = [];
  await test.upload(file, { image: 'built', progress: (bytes) => sent.push(bytes) });
  const size = 11 * MIB + 1000;
  expect(sent.slice(0, 3)).toEqual([0, expect.any(Number), size]);
  expect(sent.slice(3)).toEqual(sent.slice(3).map(() => size));
  expect(sent.length).toBeGreaterThan(6);
});

describe('a provider with a source region', () => {
  const west = (change: JsonObject = {}): Promise<TestProvider> =>
    provider('ebs-direct', { 'region-name': 'us-west-2', ...change });
  const here = (change: JsonObject = {}): Promise<TestProvider> =>
    provider('ebs-direct', { 'image-source-region': 'us-west-2', ...change });

  it('copies the image of the same build, and deletes the copy with its snapshot', async () => {
    await (await west()).upload(file, { image: 'built' });
    const test = await here();
    open.cloud.calls.reset();
    const id = await test.upload(file, { image: 'built' });
    expect(open.cloud.calls.count('ebs')).toBe(0);
    const copy = open.cloud.inspect.images().find((image) => image.id === id);
    expect(copy).toMatchObject({ state: 'available', copyOf: { region: 'us-west-2' } });
    expect(copy?.tags).toMatchObject(test.imageTags);
    const listed = (await test.end(test.provider.images?.listImages(test.call()) ?? Promise.resolve([]))).map(
      ({ externalId, ready }) => ({ externalId, ready }),
    );
    expect(listed).toEqual([{ externalId: id, ready: true }]);
    await test.end(test.provider.images?.deleteImage(id, test.call()) ?? Promise.resolve());
    expect(open.cloud.inspect.images().map(({ region }) => region)).toEqual(['us-west-2']);
    expect(open.cloud.inspect.snapshots().map(({ region }) => region)).toEqual(['us-west-2']);
  });

  it('waits for an image that is being uploaded there', async () => {
    const [source, test] = [await west(), await here()];
    const uploads = [source, test].map(async (each) =>
      each.provider.images?.uploadImage({
        ...{ ...each.call(), image: 'built', externalName: 'built-1', file, format: 'raw', md5: null, sha256: null },
        ...{ metadata: {}, tags: each.imageTags, progress: () => undefined },
      }),
    );
    await test.end(Promise.all(uploads));
    expect(open.cloud.calls.count('ebs.StartSnapshot')).toBe(1);
    expect(open.cloud.inspect.images().filter(({ copyOf }) => copyOf !== undefined)).toHaveLength(1);
  });

  it.each([
    ['of another build', { nodepool_build_id: 'b2' }],
    ['of another image', { nodepool_image_name: 'other' }],
    ['of another installation', { nodepool_installation: 'another' }],
    ['in another format', { nodepool_image_format: 'vhd' }],
  ])('uploads the file if there is only an image %s', async (_what, change) => {
    const source = await west();
    await source.upload(file, { image: 'built', tags: { ...source.imageTags, ...change } });
    const test = await here({ 'image-source-timeout': 600 });
    const before = open.time.clock.now();
    await test.upload(file, { image: 'built' });
    expect(open.cloud.calls.count('ec2.CopyImage')).toBe(0);
    expect(open.cloud.calls.count('ebs.StartSnapshot')).toBe(2);
    expect(open.time.clock.now() - before).toBeGreaterThan(500_000);
  });

  it('reports a copy that fails, and leaves nothing of it', async () => {
    await (await west()).upload(file, { image: 'built' });
    const test = await here();
    open.cloud.faults.add({ on: 'ec2.CopyImage', fault: { kind: 'task-failure', message: 'the key is disabled' } });
    expect((await failureOf(test.upload(file, { image: 'built' }))).message).toContain('the key is disabled');
    expect(open.cloud.inspect.images().map(({ region }) => region)).toEqual(['us-west-2']);
    expect(open.cloud.inspect.snapshots().map(({ region }) => region)).toEqual(['us-west-2']);
    // The next attempt copies again.
    await test.upload(file, { image: 'built', tags: { ...test.imageTags, nodepool_upload_id: '0000000002' } });
    expect(open.cloud.inspect.images()).toHaveLength(2);
  });

  it('makes one copy if the answer is lost', async () => {
    await (await west()).upload(file, { image: 'built' });
    const test = await here();
    open.cloud.faults.add({ on: 'ec2.CopyImage', fault: { kind: 'cut', when: 'after' } });
    await test.upload(file, { image: 'built' });
    expect(open.cloud.inspect.images()).toHaveLength(2);
  });

  it('finds a copy whose builder crashed as leaked, with its snapshot', async () => {
    await (await west()).upload(file, { image: 'built' });
    const test = await here();
    const id = await test.upload(file, { image: 'built' });
    const [copied] = open.cloud.inspect.images().find((image) => image.id === id)?.snapshotIds ?? [];
    expect((await test.cleanUpRound()).map(({ externalId }) => externalId)).toEqual([id]);
    // The image alone was deleted.
    const ec2 = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
    await ec2.send(new DeregisterImageCommand({ ImageId: idOf(id) }));
    ec2.destroy();
    expect((await test.cleanUpRound(() => true)).map(({ externalId }) => externalId)).toEqual([copied]);
    expect(open.cloud.inspect.snapshots()).toHaveLength(1);
  });
});
