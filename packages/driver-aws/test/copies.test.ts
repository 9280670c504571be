/** Hosts, launch templates and snapshots: remains are deleted, and look-alikes survive. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateLaunchTemplateCommand, CreateTagsCommand, EC2Client } from '@aws-sdk/client-ec2';
import { REGION } from '@nodepool/simulated-aws';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

let open: OpenCloud;

beforeEach(async () => {
  open = await openCloud();
});

afterEach(() => open.close());

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
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
  const file = join(folder, 'disk.raw');
  writeFileSync(file, Buffer.alloc(1_000_000, 'disk'));
  const diskimages = [{ name: 'built', 'import-method': 'ebs-direct' }];
  const test = await TestProvider.started(open, section(open, { diskimages }));
  const id = await test.upload(file, { image: 'built' });
  const [snapshot] = open.cloud.inspect.snapshots();
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  const Tags = [{ Key: 'nodepool_upload_id', Value: '0000000099' }];
  await client.send(new CreateTagsCommand({ Resources: [snapshot?.id ?? ''], Tags }));
  client.destroy();
  await test.end(test.provider.images?.deleteImage(id, test.call()) ?? Promise.resolve());
  expect(open.cloud.inspect.images()).toEqual([]);
  expect(open.cloud.inspect.snapshots().map((each) => each.id)).toEqual([snapshot?.id]);
  await test.stop();
  rmSync(folder, { recursive: true });
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
