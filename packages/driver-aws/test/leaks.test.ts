/** Resources that a crashed launcher or builder left, and look-alikes, which survive. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateVolumeCommand, EC2Client } from '@aws-sdk/client-ec2';
import { imageTagsHash } from '@nodepool/core';
import { BUCKET, REGION } from '@nodepool/simulated-aws';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

let open: OpenCloud;
let test: TestProvider;
let folder: string;

beforeEach(async () => {
  open = await openCloud();
  folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
  test = await TestProvider.started(
    open,
    section(open, {
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: [{ name: 'built', 'import-method': 'ebs-direct' }],
    }),
  );
});

afterEach(async () => {
  await test.stop();
  await open.close();
  rmSync(folder, { recursive: true });
});

const kinds = async (): Promise<readonly string[]> =>
  (await test.cleanUpRound(() => true)).map(({ kind }) => kind).toSorted();

it('deletes an instance, and a copy of it survives', async () => {
  const { externalId } = await test.launch();
  const copy = open.cloud.duplicate(idOf(externalId));
  expect(await kinds()).toEqual(['instance']);
  const states = new Map(open.cloud.inspect.instances().map(({ id, state }) => [id, state]));
  expect(states.get(idOf(externalId))).toBe('terminated');
  expect(states.get(copy)).toBe('running');
});

it('deletes a volume of a launch, and one that was restored later survives', async () => {
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  const [AvailabilityZone = ''] = Object.keys(open.cloud.subnets);
  const create = async (launchedAt: number): Promise<string | undefined> => {
    const tags = { ...test.tagsOf('0000000001'), nodepool_launched_at: new Date(launchedAt).toISOString() };
    const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    const input = { AvailabilityZone, Size: 8, TagSpecifications: [{ ResourceType: 'volume' as const, Tags }] };
    return (await client.send(new CreateVolumeCommand(input))).VolumeId;
  };
  await create(open.time.clock.now());
  const restored = await create(open.time.clock.now() - 86_400_000);
  client.destroy();
  expect(await kinds()).toEqual(['volume']);
  expect(open.cloud.inspect.volumes().map(({ id }) => id)).toEqual([restored]);
});

it('deletes an image with its snapshot, and an object, and copies survive', async () => {
  const file = join(folder, 'disk.raw');
  writeFileSync(file, Buffer.alloc(1_000_000, 'disk'));
  const id = await test.upload(file, { image: 'built' });
  const copy = open.cloud.duplicate(idOf(id));
  const tags = { ...test.imageTags };
  open.cloud.putObject(`nodepool/built-1-${imageTagsHash(test.imageTags)}.raw`, Buffer.from('x'), tags);
  open.cloud.putObject('nodepool/saved-by-a-person.raw', Buffer.from('x'), tags);
  expect(await kinds()).toEqual(['image', 'object']);
  expect(open.cloud.inspect.images().map((image) => image.id)).toEqual([copy]);
  expect(open.cloud.inspect.objects().map(({ key }) => key)).toEqual(['nodepool/saved-by-a-person.raw']);
});
