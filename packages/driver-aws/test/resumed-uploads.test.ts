/** Uploads that follow one of the same build whose builder stopped answering. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BUCKET, type AwsSettings } from '@nodepool/simulated-aws';
import type { JsonObject } from '@nodepool/core';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { diskFile, type DiskFile } from './disk-files.js';
import { TestProvider } from './provider.js';

const MINUTE_MS = 60_000;
/** Five parts of an object, or 80 blocks of a snapshot. */
const FILE_MIB = 40;

let open: OpenCloud;
let file: DiskFile;
const started: TestProvider[] = [];

beforeEach(() => {
  file = diskFile(FILE_MIB);
});

afterEach(async () => {
  open.cloud.faults.clear();
  for (const test of started.splice(0)) await test.stop();
  await open.close();
  file.remove();
});

async function provider(method: string, change: JsonObject = {}): Promise<TestProvider> {
  const diskimages = [{ name: 'built', 'import-method': method }];
  const test = await TestProvider.started(
    open,
    section(open, { 'object-storage': { 'bucket-name': BUCKET }, diskimages, ...change }),
  );
  started.push(test);
  return test;
}

const openWith = async (settings: Partial<AwsSettings>): Promise<void> => {
  open = await openCloud(settings);
};

/** Starts an upload that never ends. Resolves once the condition holds, with a function that aborts the upload. */
async function interrupted(test: TestProvider, condition: () => boolean): Promise<() => Promise<void>> {
  const tags = { ...test.imageTags, nodepool_upload_id: '0000000007' };
  const { images } = test.provider;
  const controller = new AbortController();
  const call = { ...test.call(30 * 24 * 60 * MINUTE_MS), signal: controller.signal };
  const ended = images
    ?.uploadImage({
      ...{ ...call, image: 'built', externalName: 'built-7', file: file.path },
      ...{ format: 'raw', md5: null, sha256: file.sha256, metadata: {}, tags, progress: () => undefined },
    })
    .catch(() => undefined);
  expect(await open.time.until(condition, 30 * MINUTE_MS)).toBe(true);
  return async () => {
    controller.abort(new Error('the session is lost'));
    await test.end(Promise.resolve(ended));
  };
}

/** Stops a provider, which then makes no more calls, as after a crash. */
async function crash(test: TestProvider): Promise<void> {
  await test.stop();
  started.splice(started.indexOf(test), 1);
}

/** Cuts the connection of the next call of each operation. */
function cutOnce(...operations: readonly string[]): void {
  for (const on of operations) open.cloud.faults.add({ on, fault: { kind: 'cut', when: 'before' } });
}

const tagOf = (resource: { readonly tags: Readonly<Record<string, string>> } | undefined): string | undefined =>
  resource?.tags['nodepool_upload_id'];

describe('an object', () => {
  beforeEach(() => openWith({ importMs: MINUTE_MS }));

  it('is continued after the parts that are stored, although a call of the search fails', async () => {
    const { cloud } = open;
    // The third part is never answered; the others are stored.
    cloud.faults.add({ on: 's3.UploadPart', after: 2, fault: { kind: 'hang', when: 'before' } });
    await interrupted(await provider('snapshot'), () => cloud.inspect.uploads()[0]?.parts === 4);
    cloud.calls.reset();
    cutOnce('s3.ListObjectsV2', 's3.ListMultipartUploads', 's3.ListParts');
    const next = await provider('snapshot');
    const id = await next.upload(file.path, { image: 'built', sha256: file.sha256 });
    expect(cloud.calls.count('s3.UploadPart')).toBe(1);
    expect(cloud.calls.count('s3.CreateMultipartUpload')).toBe(0);
    const [image] = cloud.inspect.images();
    expect(image?.id).toBe(id);
    expect(tagOf(image)).toBe('0000000001');
    expect(cloud.inspect.snapshots()[0]?.sha256).toBe(file.sha256);
    expect(cloud.inspect.objects()).toEqual([]);
    expect(cloud.inspect.uploads()).toEqual([]);
  });

  it('is uploaded again where a stored part differs', async () => {
    const { cloud } = open;
    cloud.faults.add({ on: 's3.UploadPart', after: 2, fault: { kind: 'hang', when: 'before' } });
    const other = diskFile(FILE_MIB, 2);
    const own = file;
    file = other;
    await interrupted(await provider('snapshot'), () => cloud.inspect.uploads()[0]?.parts === 4);
    file = own;
    other.remove();
    cloud.calls.reset();
    await (await provider('snapshot')).upload(file.path, { image: 'built', sha256: file.sha256 });
    expect(cloud.calls.count('s3.UploadPart')).toBe(FILE_MIB / 8);
    expect(cloud.inspect.snapshots()[0]?.sha256).toBe(file.sha256);
  });

  it('that is complete is used, and the other upload does not delete it', async () => {
    const { cloud, time } = open;
    cloud.faults.add({ on: 'ec2.ImportSnapshot', fault: { kind: 'hang', when: 'before' } });
    const first = await provider('snapshot');
    const abort = await interrupted(first, () => cloud.inspect.objects().length === 1);
    await time.until(() => cloud.calls.count('ec2.ImportSnapshot') === 1, MINUTE_MS);
    cloud.calls.reset();
    cloud.configure({ importMs: 10 * MINUTE_MS });
    const next = await provider('snapshot');
    const upload = next.provider.images?.uploadImage({
      ...{ ...next.call(), image: 'built', externalName: 'built-1', file: file.path, format: 'raw', md5: null },
      ...{ sha256: file.sha256, metadata: {}, tags: next.imageTags, progress: () => undefined },
    });
    await time.until(() => cloud.calls.count('ec2.ImportSnapshot') === 1, MINUTE_MS);
    await abort();
    expect(cloud.inspect.objects().map(tagOf)).toEqual(['0000000001']);
    await next.end(upload ?? Promise.resolve(''));
    expect(cloud.calls.count('s3.UploadPart')).toBe(0);
    expect(cloud.inspect.images().map(tagOf)).toEqual(['0000000001']);
    expect(cloud.inspect.objects()).toEqual([]);
  });

  it('of another build, provider or installation is not continued', async () => {
    const { cloud } = open;
    cloud.faults.add({ on: 's3.UploadPart', after: 2, fault: { kind: 'hang', when: 'before' } });
    await interrupted(await provider('snapshot'), () => cloud.inspect.uploads()[0]?.parts === 4);
    const next = await provider('snapshot');
    for (const change of [
      { nodepool_build_id: 'b2' },
      { nodepool_installation: 'another' },
      { nodepool_provider_name: 'other' },
      { nodepool_image_name: 'other' },
    ]) {
      cloud.calls.reset();
      await next.upload(file.path, { image: 'built', sha256: file.sha256, tags: { ...next.imageTags, ...change } });
      expect(cloud.calls.count('s3.UploadPart')).toBe(FILE_MIB / 8);
    }
    expect(cloud.inspect.uploads()).toMatchObject([{ parts: 4 }]);
  });

  it('is uploaded without the right to list unfinished uploads', async () => {
    const { cloud } = open;
    cloud.permissions.deny('s3:ListBucketMultipartUploads');
    await (await provider('snapshot')).upload(file.path, { image: 'built', sha256: file.sha256 });
    expect(cloud.inspect.images()).toHaveLength(1);
  });
});

describe('a snapshot of EBS direct', () => {
  // Each call takes time, so that the snapshot is marked while it is written.
  beforeEach(() => openWith({ latencyMs: 8000 }));

  it('is continued after the blocks that are marked as written, although a call of the search fails', async () => {
    const { cloud } = open;
    cloud.faults.add({
      on: 'ebs.PutSnapshotBlock',
      after: 64,
      times: Infinity,
      fault: { kind: 'hang', when: 'before' },
    });
    const written = (): number => Number(cloud.inspect.snapshots()[0]?.tags['nodepool_written_blocks'] ?? 0);
    const first = await provider('ebs-direct');
    await interrupted(first, () => written() >= 32);
    await crash(first);
    const marked = written();
    cloud.faults.clear();
    cloud.calls.reset();
    cutOnce('ec2.DescribeSnapshots', 'ec2.CreateTags');
    const next = await provider('ebs-direct');
    const id = await next.upload(file.path, { image: 'built', sha256: file.sha256 });
    expect(cloud.calls.count('ebs.StartSnapshot')).toBe(0);
    expect(cloud.calls.count('ebs.PutSnapshotBlock')).toBe(2 * FILE_MIB - marked);
    const [snapshot, another] = cloud.inspect.snapshots();
    expect(another).toBeUndefined();
    expect(snapshot?.sha256).toBe(file.sha256);
    expect(tagOf(snapshot)).toBe('0000000001');
    expect(cloud.inspect.images()).toMatchObject([{ id, snapshotIds: [snapshot?.id] }]);
  });

  it('of another build, a copy, and one that another program is writing are not continued', async () => {
    const { cloud } = open;
    cloud.faults.add({
      on: 'ebs.PutSnapshotBlock',
      after: 64,
      times: Infinity,
      fault: { kind: 'hang', when: 'before' },
    });
    const first = await provider('ebs-direct');
    await interrupted(first, () => cloud.inspect.snapshots()[0]?.tags['nodepool_snapshot_id'] !== undefined);
    await crash(first);
    cloud.faults.clear();
    const [snapshot] = cloud.inspect.snapshots();
    cloud.duplicate(snapshot?.id ?? '');
    cloud.duplicate(snapshot?.id ?? '', { nodepool_written_blocks: undefined, nodepool_snapshot_id: undefined });
    cloud.calls.reset();
    const next = await provider('ebs-direct');
    const tags = { ...next.imageTags, nodepool_build_id: 'b2' };
    await next.upload(file.path, { image: 'built', sha256: file.sha256, tags });
    expect(cloud.calls.count('ebs.StartSnapshot')).toBe(1);
    await next.upload(file.path, { image: 'built', sha256: file.sha256 });
    expect(cloud.calls.count('ebs.StartSnapshot')).toBe(1);
    expect(cloud.inspect.snapshots().filter(({ state }) => state === 'pending')).toHaveLength(2);
  });
});
