/** The IAM policy in the documentation is that of the calls that the driver makes. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { CreateVolumeCommand, EC2Client } from '@aws-sdk/client-ec2';
import type { JsonObject } from '@nodepool/core';
import { BUCKET, INSTANCE_PROFILE, REGION } from '@nodepool/simulated-aws';
import { callOn } from '@nodepool/driver-kit';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const PAGE = join(__dirname, '../../../docs/drivers/aws.md');

/** Actions for remains that these tests do not create, and for the cancellation of imports. */
const UNUSED: ReadonlySet<string> = new Set([
  'ec2:CancelImportTask',
  'ec2:CopyImage',
  'ec2:DeleteLaunchTemplate',
  'ec2:DeleteNetworkInterface',
  'ec2:DeleteVolume',
  'ec2:ReleaseAddress',
  's3:AbortMultipartUpload',
  's3:ListMultipartUploadParts',
]);

let open: OpenCloud;
let folder: string;

beforeEach(async () => {
  open = await openCloud();
  folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
});

afterEach(async () => {
  await open.close();
  rmSync(folder, { recursive: true });
});

function policy(): readonly string[] {
  const json = /```json\n([\s\S]*?)```/.exec(readFileSync(PAGE, 'utf8'))?.[1] ?? '';
  const { Statement } = JSON.parse(json) as { readonly Statement: readonly { readonly Action: readonly string[] }[] };
  return Statement.flatMap(({ Action }) => Action);
}

async function useEverything(): Promise<void> {
  const { cloud, time } = open;
  const file = join(folder, 'disk.raw');
  writeFileSync(file, Buffer.alloc(1_000_000, 'disk'));
  const [zone = ''] = Object.keys(cloud.subnets);
  const label = { 'cloud-image': 'amazon', 'key-name': 'nodepool' };
  const fleet = { 'instance-types': ['m5.large'], 'allocation-strategy': 'lowest-price' };
  const profile: JsonObject = { 'iam-instance-profile': { name: INSTANCE_PROFILE } };
  const test = await TestProvider.started(
    open,
    section(open, {
      'interruption-queue': cloud.queueUrl,
      'object-storage': { 'bucket-name': BUCKET },
      diskimages: ['snapshot', 'ebs-direct', 'image'].map((method) => ({ name: method, 'import-method': method })),
      pools: [
        {
          name: 'main',
          'availability-zone': zone,
          'subnet-ids': Object.values(cloud.subnets).slice(0, 2),
          labels: [
            { ...label, ...profile, name: 'small', 'instance-type': 'm5.large', 'use-spot': true },
            { ...label, name: 'fleet', fleet },
            { ...label, name: 'host', 'instance-type': 'm5.large', 'dedicated-host': true },
          ],
        },
      ],
    }),
  );
  for (const [index, name] of ['small', 'fleet', 'host'].entries()) {
    const node = String(index + 1).padStart(10, '0');
    const { externalId } = await test.launch(node, { label: name });
    if (name === 'small') {
      await test.end(
        test.provider.getConsoleLog?.(externalId, { pool: 'main', label: name }, test.call()) ?? Promise.resolve(''),
      );
      cloud.interruptSpot(idOf(externalId));
      await time.until(() => cloud.inspect.messages() === 0, 60_000);
    }
    await test.cleanUp(externalId, node);
  }
  for (const image of ['snapshot', 'ebs-direct', 'image']) {
    const id = await test.upload(file, { image });
    await test.end(test.provider.images?.deleteImage(id, callOn(time.clock)) ?? Promise.resolve());
  }
  await test.end(test.provider.getQuotaLimits?.(callOn(time.clock)) ?? Promise.resolve(undefined));
  await test.cleanUpRound();
  await test.stop();
}

it('the documented policy suffices, and contains no action without a use', async () => {
  const actions = policy();
  open.cloud.permissions.allowOnly(actions);
  open.cloud.permissions.resetUsed();
  await useEverything();
  const used = open.cloud.permissions.used();
  expect(used.filter((action) => !actions.includes(action))).toEqual([]);
  expect(actions.filter((action) => !used.includes(action) && !UNUSED.has(action))).toEqual([]);
});

it('reads the limits of families and volumes, in vCPUs and GiB', async () => {
  open.cloud.setQuota('L-1216C47A', 64);
  open.cloud.setQuota('L-7A658B76', 50);
  const test = await TestProvider.started(open);
  const limits = await test.end(test.provider.getQuotaLimits?.(callOn(open.time.clock)) ?? Promise.resolve(undefined));
  expect(limits?.get('L-1216C47A')).toBe(64);
  expect(limits?.get('L-7A658B76')).toBe(51_200);
  await test.stop();
});

it('subtracts the volumes of other programs from the limits, and not those of its nodes', async () => {
  open.cloud.setQuota('L-7A658B76', 1);
  const volume = { 'volume-type': 'gp3', 'volume-size': 24 };
  const test = await TestProvider.started(open, section(open, {}, volume));
  await test.launch();
  const client = new EC2Client({ region: REGION, endpoint: open.cloud.url, credentials: open.cloud.credentials });
  const [AvailabilityZone = ''] = Object.keys(open.cloud.subnets);
  await client.send(new CreateVolumeCommand({ AvailabilityZone, Size: 100, VolumeType: 'gp3' }));
  client.destroy();
  const limits = await test.end(test.provider.getQuotaLimits?.(callOn(open.time.clock)) ?? Promise.resolve(undefined));
  expect(limits?.get('L-7A658B76')).toBe(924);
  const need = await test.end(
    test.provider.getQuotaForLabel?.('main', 'small', test.call()) ?? Promise.resolve(undefined),
  );
  expect(need?.get('L-7A658B76')).toBe(24);
  await test.stop();
});
