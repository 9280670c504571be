/** Remains of the uploads of a crashed builder, and look-alikes, which survive. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { ExternalId, Resource } from '@nodepool/core';
import { CreateTagsCommand, EC2Client, ImportImageCommand } from '@aws-sdk/client-ec2';
import { CreateMultipartUploadCommand, S3Client } from '@aws-sdk/client-s3';
import { BUCKET, REGION } from '@nodepool/simulated-aws';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { diskFile, type DiskFile } from './disk-files.js';
import { TestProvider } from './provider.js';

const MINUTE_MS = 60_000;

let open: OpenCloud;
let file: DiskFile;
/** The provider of the builder that crashes. */
let crashed: TestProvider;
/** The provider of the launcher that cleans up. */
let test: TestProvider;

const started = (): Promise<TestProvider> =>
  TestProvider.started(
    open,
    section(open, {
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: ['snapshot', 'ebs-direct', 'image'].map((name) => ({ name, 'import-method': name })),
    }),
  );

beforeEach(async () => {
  open = await openCloud({ importMs: 10 * MINUTE_MS });
  file = diskFile(20);
  crashed = await started();
  test = await started();
});

afterEach(async () => {
  open.cloud.faults.clear();
  await test.stop();
  await crashed.stop();
  await open.close();
  file.remove();
});

/** Starts an upload that is no longer looked after once the condition holds. */
async function crash(image: string, upload: string, condition: () => boolean): Promise<void> {
  const tags = { ...crashed.imageTags, nodepool_image_name: image, nodepool_upload_id: upload };
  void crashed.provider.images
    ?.uploadImage({
      ...{ ...crashed.call(30 * 24 * 60 * MINUTE_MS), image, externalName: `${image}-${upload}`, file: file.path },
      ...{ format: 'raw', md5: null, sha256: null, metadata: {}, tags, progress: () => undefined },
    })
    .catch(() => undefined);
  expect(await open.time.until(condition, 30 * MINUTE_MS)).toBe(true);
}

const ofKind = (resources: readonly Resource[], kind: string): readonly ExternalId[] =>
  resources.filter((resource) => resource.kind === kind).map(({ externalId }) => externalId);

const pass = (ms: number): Promise<boolean> => open.time.until(() => false, ms);

it('deletes an image with its snapshot, and an object, and copies survive', async () => {
  const id = await test.upload(file.path, { image: 'ebs-direct' });
  const copy = open.cloud.duplicate(idOf(id));
  const tags = { ...test.imageTags };
  const key = `nodepool/${tags.nodepool_installation}/test/${tags.nodepool_image_name}/b1.raw`;
  open.cloud.putObject(key, Buffer.from('x'), tags);
  open.cloud.putObject(key.replace('b1', 'b2'), Buffer.from('x'), tags);
  open.cloud.putObject('nodepool/saved-by-a-person.raw', Buffer.from('x'), tags);
  open.cloud.putObject(`backup/${key}`, Buffer.from('x'), tags);
  const round = await test.cleanUpRound(() => true);
  expect(round.map(({ kind }) => kind)).toEqual(['image', 'object']);
  expect(open.cloud.inspect.images().map((image) => image.id)).toEqual([copy]);
  expect(
    open.cloud.inspect
      .objects()
      .map((object) => object.key)
      .toSorted(),
  ).toEqual([`backup/${key}`, key.replace('b1', 'b2'), 'nodepool/saved-by-a-person.raw']);
});

it('deletes the snapshots of the upload of an image only', async () => {
  const id = await test.upload(file.path, { image: 'ebs-direct' });
  const [snapshot] = open.cloud.inspect.snapshots();
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  const Tags = [{ Key: 'nodepool_upload_id', Value: '0000000099' }];
  await client.send(new CreateTagsCommand({ Resources: [snapshot?.id ?? ''], Tags }));
  client.destroy();
  await test.end(test.provider.images?.deleteImage(id, test.call()) ?? Promise.resolve());
  expect(open.cloud.inspect.images()).toEqual([]);
  expect(open.cloud.inspect.snapshots().map((each) => each.id)).toEqual([snapshot?.id]);
});

it('deletes the parts of an unfinished upload, and those of other programs survive', async () => {
  const { cloud } = open;
  cloud.faults.add({ on: 's3.UploadPart', after: 1, fault: { kind: 'hang', when: 'before' } });
  await crash('snapshot', '0000000001', () => cloud.inspect.uploads()[0]?.parts === 2);
  await crashed.stop();
  const s3 = new S3Client({
    ...{ region: REGION, endpoint: cloud.url, credentials: cloud.credentials, forcePathStyle: true },
  });
  for (const Key of [
    'nodepool/backup.raw',
    'disks/nodepool/a/test/snapshot/b1.raw',
    'nodepool/a/other/snapshot/b1.raw',
  ]) {
    await s3.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key }));
  }
  s3.destroy();
  const [resource, ...others] = await test.cleanUpRound(() => true);
  expect(others).toEqual([]);
  expect(resource?.kind).toBe('multipart-upload');
  // The upload that continues it can have another id.
  const { nodepool_upload_id: _upload, ...ofBuild } = test.imageTags;
  expect(resource?.tags).toEqual({ ...ofBuild, nodepool_image_name: 'snapshot' });
  expect(cloud.inspect.uploads()).toHaveLength(3);
});

it('deletes an unfinished snapshot of EBS direct, and a copy of it survives', async () => {
  const { cloud } = open;
  cloud.configure({ latencyMs: 8000 });
  cloud.faults.add({ on: 'ebs.PutSnapshotBlock', after: 33, times: Infinity, fault: { kind: 'hang', when: 'before' } });
  const tags = (): Readonly<Record<string, string>> => cloud.inspect.snapshots()[0]?.tags ?? {};
  await crash('ebs-direct', '0000000001', () => tags()['nodepool_snapshot_id'] !== undefined);
  await crashed.stop();
  cloud.configure({ latencyMs: 0 });
  const own = cloud.inspect.snapshots()[0]?.id;
  const copy = cloud.duplicate(own ?? '');
  expect(ofKind(await test.cleanUpRound(() => true), 'snapshot')).toEqual([own]);
  expect(cloud.inspect.snapshots().map(({ id }) => id)).toEqual([copy]);
});

it.each(['snapshot', 'image'])(
  'cancels an unfinished import of the method %s, and another one survives',
  async (image) => {
    const { cloud } = open;
    await crash(image, '0000000001', () => cloud.inspect.importTasks().length === 1);
    await crashed.stop();
    const ec2 = new EC2Client({ region: REGION, endpoint: cloud.url, credentials: cloud.credentials });
    const UserBucket = { S3Bucket: BUCKET, S3Key: cloud.inspect.objects()[0]?.key };
    await ec2.send(new ImportImageCommand({ DiskContainers: [{ Format: 'raw', UserBucket }] }));
    ec2.destroy();
    const [own, other] = cloud.inspect.importTasks();
    const round = await test.cleanUpRound(({ kind }) => kind === 'import');
    expect(ofKind(round, 'import')).toEqual([own?.id]);
    const states = new Map(cloud.inspect.importTasks().map(({ id, state }) => [id, state]));
    expect(states.get(own?.id ?? '')).not.toBe('active');
    expect(states.get(other?.id ?? '')).toBe('active');
  },
);

it.each(['snapshot', 'image'])('tags the results of interrupted imports (%s), each by its own task', async (image) => {
  const { cloud } = open;
  const results = (): readonly { readonly id: string; readonly tags: Readonly<Record<string, string>> }[] =>
    image === 'image' ? cloud.inspect.images() : cloud.inspect.snapshots();
  for (const upload of ['0000000001', '0000000002']) {
    const before = cloud.inspect.importTasks().length;
    await crash(image, upload, () => cloud.inspect.importTasks().length > before);
  }
  // The result of an import by another program.
  const ec2 = new EC2Client({ region: REGION, endpoint: cloud.url, credentials: cloud.credentials });
  const UserBucket = { S3Bucket: BUCKET, S3Key: cloud.inspect.objects()[0]?.key };
  await ec2.send(new ImportImageCommand({ DiskContainers: [{ Format: 'raw', UserBucket }] }));
  ec2.destroy();
  await crashed.stop();
  await pass(15 * MINUTE_MS);
  await test.cleanUpRound();
  const tagged = results().filter(({ tags }) => 'nodepool_upload_id' in tags);
  const uploads = tagged.map(({ tags }) => tags['nodepool_upload_id']);
  expect(uploads.toSorted()).toEqual(['0000000001', '0000000002']);
  for (const { id, tags } of tagged) {
    expect(tags).toMatchObject({ nodepool_image_name: image, Name: `${image}-${tags['nodepool_upload_id']}` });
    if (image === 'image') expect(tags['nodepool_ami_name']).toMatch(/^import-ami-/);
    else expect(tags['nodepool_snapshot_id']).toBe(id);
  }
  const copy = cloud.duplicate(tagged[0]?.id ?? '');
  const round = await test.cleanUpRound(({ kind }) => kind === 'image' || kind === 'snapshot');
  expect(ofKind(round, image).toSorted()).toEqual(tagged.map(({ id }) => id).toSorted());
  const left = results().map(({ id }) => id);
  expect(left).toContain(copy);
  for (const { id } of tagged) expect(left).not.toContain(id);
  // The copy has a snapshot of its own if it is an image; the other program has an image and a snapshot.
  expect(cloud.inspect.images()).toHaveLength(image === 'image' ? 2 : 1);
  expect(cloud.inspect.snapshots()).toHaveLength(2);
});
