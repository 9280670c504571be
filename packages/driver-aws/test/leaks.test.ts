/** Resources that a crashed launcher or builder left, and look-alikes, which survive. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateLaunchTemplateCommand, CreateTagsCommand, CreateVolumeCommand, EC2Client } from '@aws-sdk/client-ec2';
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

it('releases a dedicated host without an instance, and one with an instance survives', async () => {
  const [zone = ''] = Object.keys(open.cloud.subnets);
  const own = section(open, {}, { 'dedicated-host': true }, { 'availability-zone': zone });
  const hosts = await TestProvider.started(open, own);
  const { externalId, hostId } = await hosts.launch();
  const leaked = async (): Promise<readonly unknown[]> =>
    (await hosts.cleanUpRound()).filter(({ kind }) => kind === 'host').map(({ externalId: id }) => id);
  expect(await leaked()).toEqual([]);
  open.cloud.forgetInstance(idOf(externalId));
  expect(await leaked()).toEqual([hostId]);
  await hosts.cleanUpRound(({ kind }) => kind === 'host');
  expect(await leaked()).toEqual([]);
  await hosts.stop();
});

it('deletes launch templates that are not in use, and those of another installation or provider survive', async () => {
  const fleet = { 'instance-types': ['m5.large'], 'allocation-strategy': 'lowest-price' };
  const fleets = await TestProvider.started(open, section(open, {}, { fleet }));
  const { externalId } = await fleets.launch();
  await fleets.cleanUp(externalId);
  const [template] = open.cloud.inspect.launchTemplates();
  const id = template?.id ?? '';
  const copy = open.cloud.duplicate(id);
  const others = [
    await templateWith({ ...template?.tags, nodepool_installation: 'f'.repeat(16) }),
    await templateWith({ ...template?.tags, nodepool_provider_name: 'other' }),
  ];
  const left = (): readonly string[] => open.cloud.inspect.launchTemplates().map((each) => each.id);
  await fleets.cleanUpRound();
  expect(left()).toContain(id);
  await open.time.until(() => false, 90_000_000);
  await fleets.cleanUpRound();
  expect(left().toSorted()).toEqual([copy, ...others].toSorted());
  await fleets.stop();
});

it('deletes the snapshots of the upload of an image only', async () => {
  const file = join(folder, 'disk.raw');
  writeFileSync(file, Buffer.alloc(1_000_000, 'disk'));
  const id = await test.upload(file, { image: 'built' });
  const [snapshot] = open.cloud.inspect.snapshots();
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  const Tags = [{ Key: 'nodepool_upload_id', Value: '0000000099' }];
  await client.send(new CreateTagsCommand({ Resources: [snapshot?.id ?? ''], Tags }));
  client.destroy();
  await test.end(test.provider.images?.deleteImage(id, test.call()) ?? Promise.resolve());
  expect(open.cloud.inspect.images()).toEqual([]);
  expect(open.cloud.inspect.snapshots().map((each) => each.id)).toEqual([snapshot?.id]);
});

/** Creates a launch template whose tags name it, and returns its id. */
async function templateWith(tags: Readonly<Record<string, string>>): Promise<string> {
  const LaunchTemplateName = `nodepool-launch-template-${Object.values(tags).join('-')}`.slice(0, 100);
  const Tags = Object.entries({ ...tags, nodepool_template: LaunchTemplateName }).map(([Key, Value]) => ({
    Key,
    Value,
  }));
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  const { LaunchTemplate } = await client.send(
    new CreateLaunchTemplateCommand({
      LaunchTemplateName,
      LaunchTemplateData: { KeyName: 'nodepool' },
      TagSpecifications: [{ ResourceType: 'launch-template', Tags }],
    }),
  );
  client.destroy();
  return LaunchTemplate?.LaunchTemplateId ?? '';
}
