/** Resources that a crashed launcher or builder left, and look-alikes, which survive. */

import { CreateLaunchTemplateCommand, CreateVolumeCommand, EC2Client } from '@aws-sdk/client-ec2';
import { REGION } from '@nodepool/simulated-aws';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

let open: OpenCloud;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud();
  test = await TestProvider.started(open);
});

afterEach(async () => {
  await test.stop();
  await open.close();
});

const kinds = async (): Promise<readonly string[]> =>
  (await test.cleanUpRound(() => true)).map(({ kind }) => kind).toSorted();

/** Creates a volume that is not attached. Resolves with its id. */
async function createVolume(tags: Readonly<Record<string, string>>): Promise<string> {
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  const [AvailabilityZone = ''] = Object.keys(open.cloud.subnets);
  const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  const input = { AvailabilityZone, Size: 8, TagSpecifications: [{ ResourceType: 'volume' as const, Tags }] };
  const { VolumeId = '' } = await client.send(new CreateVolumeCommand(input));
  client.destroy();
  return VolumeId;
}

it('deletes an instance, and a copy of it survives', async () => {
  const { externalId } = await test.launch();
  const copy = open.cloud.duplicate(idOf(externalId));
  expect(await kinds()).toEqual(['instance']);
  const states = new Map(open.cloud.inspect.instances().map(({ id, state }) => [id, state]));
  expect(states.get(idOf(externalId))).toBe('terminated');
  expect(states.get(copy)).toBe('running');
});

it('deletes a volume of a launch, and one that was restored later survives', async () => {
  const create = (launchedAt: number): Promise<string> =>
    createVolume({ ...test.tagsOf('0000000001'), nodepool_launched_at: new Date(launchedAt).toISOString() });
  await create(open.time.clock.now());
  const restored = await create(open.time.clock.now() - 86_400_000);
  expect(await kinds()).toEqual(['volume']);
  expect(open.cloud.inspect.volumes().map(({ id }) => id)).toEqual([restored]);
});

it('deletes volumes and interfaces of a shared launch after its end, each for all nodes of the launch', async () => {
  const nodes = ['0000000001', '0000000002', '0000000003'];
  const launched = await test.end(Promise.all(nodes.map((node) => test.begin(node))));
  expect(open.cloud.calls.count('ec2.RunInstances')).toBe(1);
  const [volume] = open.cloud.inspect.volumes();
  const [nic] = open.cloud.inspect.networkInterfaces();
  const left = [await createVolume(volume?.tags ?? {}), open.cloud.duplicate(nic?.id ?? '')];
  const [first, ...others] = launched;
  await test.cleanUp(first?.externalId ?? null, nodes[0]);
  const found = async (): Promise<readonly string[]> =>
    (await test.cleanUpRound()).filter(({ kind }) => kind !== 'instance').map(({ externalId }) => idOf(externalId));
  expect(await found()).toEqual([]);
  for (const [index, { externalId }] of others.entries()) await test.cleanUp(externalId, nodes[index + 1]);
  expect((await found()).toSorted()).toEqual(left.toSorted());
  const round = await test.cleanUpRound(({ otherOwners = [] }) => otherOwners.length === nodes.length - 1);
  for (const { tags, otherOwners = [] } of round) {
    const owners = [tags, ...otherOwners].map(({ nodepool_node_id: node = '' }) => node);
    expect(owners.toSorted()).toEqual(nodes);
    expect(tags).toMatchObject({ nodepool_provider_name: 'test', nodepool_pool_name: 'main' });
  }
  expect(open.cloud.inspect.volumes()).toEqual([]);
  expect(open.cloud.inspect.networkInterfaces()).toEqual([]);
});

it('releases a dedicated host without an instance, and one with an instance and a copy survive', async () => {
  const [zone = ''] = Object.keys(open.cloud.subnets);
  const own = section(open, {}, { 'dedicated-host': true }, { 'availability-zone': zone });
  const hosts = await TestProvider.started(open, own);
  const { externalId, hostId } = await hosts.launch();
  const leaked = async (): Promise<readonly unknown[]> =>
    (await hosts.cleanUpRound()).filter(({ kind }) => kind === 'host').map(({ externalId: id }) => id);
  expect(await leaked()).toEqual([]);
  const copy = open.cloud.duplicate(hostId ?? '');
  open.cloud.forgetInstance(idOf(externalId));
  expect(await leaked()).toEqual([hostId]);
  await hosts.cleanUpRound(({ kind }) => kind === 'host');
  expect(await leaked()).toEqual([]);
  const left = open.cloud.inspect.hosts().filter(({ state }) => state === 'available');
  expect(left.map(({ id }) => id)).toEqual([copy]);
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
