/** Uploads of disk images by each method, copies between regions, and deletions. */

import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { BUCKET } from '@nodepool/simulated-aws';
import { failureOf } from '@nodepool/driver-kit';
import { openCloud, section, type OpenCloud } from './cloud.js';
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

it('the image of the same build in the source region is copied instead of uploaded', async () => {
  const west = await provider('ebs-direct', { 'region-name': 'us-west-2' });
  await west.upload(file, { image: 'built' });
  const test = await provider('ebs-direct', { 'image-source-region': 'us-west-2' });
  open.cloud.calls.reset();
  const id = await test.upload(file, { image: 'built' });
  expect(open.cloud.calls.count('ebs')).toBe(0);
  const copy = open.cloud.inspect.images().find((image) => image.id === id);
  expect(copy?.copyOf?.region).toBe('us-west-2');
  expect(copy?.tags).toMatchObject(test.imageTags);
});
