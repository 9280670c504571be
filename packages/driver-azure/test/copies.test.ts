/** Resources that inherit our tags and belong to other people. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { rm } from 'node:fs/promises';
import type { ExternalId } from '@nodepool/core';
import type { SimulatedAzure } from '@nodepool/simulated-azure';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';
import { writeVhd } from './vhd-file.js';

type ResourceType = Parameters<SimulatedAzure['list']>[0];

const VMS = 'Microsoft.Compute/virtualMachines';
const DISKS = 'Microsoft.Compute/disks';
const IMAGES = 'Microsoft.Compute/images';
const NICS = 'Microsoft.Network/networkInterfaces';
const IPS = 'Microsoft.Network/publicIPAddresses';
const GROUP = 'nodepool';

let open: OpenCloud;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud();
  test = await TestProvider.started(open, section({ diskimages: [{ name: 'debian' }] }, {}, { 'public-ipv4': true }));
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
});

/** Copies each resource of a type, as a person does who restores a backup. */
function copyAll(type: ResourceType, group: string, nameOf: (name: string) => string): void {
  for (const resource of open.cloud.list(type)) open.cloud.copy(resource, group, nameOf(resource.name));
}

function names(type: ResourceType): readonly string[] {
  return open.cloud.list(type).map(({ name }) => name);
}

it('a VM that is restored from a backup, its interface, address and disk survive the deletion of the node', async () => {
  const { externalId } = await test.launch();
  const types = [VMS, NICS, IPS, DISKS] as const;
  const copies = types.map((type) => names(type).map((name) => `restored-${name}`));
  for (const type of types) copyAll(type, GROUP, (name) => `restored-${name}`);
  for (const type of [NICS, IPS, DISKS] as const) {
    for (const copy of open.cloud.list(type).filter(({ name }) => name.startsWith('restored-'))) {
      // The restored parts are not attached yet.
      copy.extra = {};
      copy.properties = {};
    }
  }
  expect(open.cloud.list(VMS)[1]?.tags).toEqual(open.cloud.list(VMS)[0]?.tags);
  expect(await test.cleanUpRound(() => false)).toMatchObject([{ kind: 'instance', externalId }]);
  await test.cleanUp(null);
  expect(await test.cleanUpRound(() => true)).toEqual([]);
  expect(types.map((type) => names(type))).toEqual(copies);
});

it('a VM of the same name that is restored to another resource group survives the deletion of the node', async () => {
  const { externalId } = await test.launch();
  copyAll(VMS, 'restored', (name) => name);
  await test.cleanUp(externalId);
  await test.cleanUp(externalId);
  expect(open.cloud.list(VMS).map(({ group, name }) => [group, name])).toEqual([['restored', externalId]]);
});

it('a VM in another resource group is not leaked, even if a program without our mark of copies created it', async () => {
  await test.launch();
  copyAll(VMS, 'others', (name) => name);
  copyAll(VMS, 'elsewhere', (name) => `of-${name}`);
  for (const vm of open.cloud.list(VMS)) {
    const { nodepool_resource: _mark, ...tags } = vm.tags;
    vm.tags = tags;
  }
  const leaked = (await test.cleanUpRound(() => true)).filter(({ kind }) => kind === 'instance');
  expect(leaked).toHaveLength(1);
  expect(open.cloud.list(VMS).map(({ group }) => group)).toEqual(['others', 'elsewhere']);
});

it('a copy of an image survives, and is not listed, also one of the same name in another resource group', async () => {
  const { folder, file } = await writeVhd();
  const externalId = await test.upload(file);
  await rm(folder, { recursive: true });
  copyAll(IMAGES, GROUP, (name) => `copy-of-${name}`.slice(0, 80));
  open.cloud.copy(open.cloud.list(IMAGES)[0]!, 'others', names(IMAGES)[0] ?? '');
  const { images } = test.provider;
  const listed = await test.end(images!.listImages(test.call()));
  expect(listed.map((image): ExternalId => image.externalId)).toEqual([externalId]);
  await test.cleanUpRound(() => true);
  await test.end(images!.deleteImage(externalId, test.call()));
  expect(names(IMAGES)).toHaveLength(2);
  expect(open.cloud.list(IMAGES).map(({ group }) => group)).toEqual([GROUP, 'others']);
});
