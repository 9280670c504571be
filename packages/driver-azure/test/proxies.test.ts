/** Answers of proxies in front of Azure, which look like success. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Resource } from '@nodepool/simulated-azure';
import { failureOf } from '@nodepool/driver-kit';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';
import { writeVhd } from './vhd-file.js';

const VMS = 'Microsoft.Compute/virtualMachines';
const IMAGES = 'Microsoft.Compute/images';
const ALL = [
  VMS,
  'Microsoft.Network/networkInterfaces',
  'Microsoft.Network/publicIPAddresses',
  'Microsoft.Compute/disks',
] as const;

const json = { status: 'ok' };
const ANSWERS = [
  ['200 with JSON', { kind: 'proxy', status: 200, json }],
  ['202 with JSON', { kind: 'proxy', status: 202, json }],
  ['204', { kind: 'proxy', status: 204 }],
] as const;

let open: OpenCloud;
let test: TestProvider;
let folder: string;
let file: string;

beforeEach(async () => {
  ({ folder, file } = await writeVhd());
  open = await openCloud();
  test = await TestProvider.started(open, section({ diskimages: [{ name: 'debian' }] }));
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
  await rm(folder, { recursive: true, force: true });
});

const everything = (): readonly Resource[] => ALL.flatMap((type) => open.cloud.list(type));

describe.each(ANSWERS)('an answer of a proxy: %s', (_what, fault) => {
  it('is no list', async () => {
    open.cloud.faults.add({ on: 'virtualMachines.list', fault });
    const failure = await failureOf(test.end(test.provider.listNodes(test.call())));
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(failure.message).toContain('x-ms-request-id');
  });

  it('creates no VM', async () => {
    open.cloud.faults.add({ on: 'virtualMachines.put', fault, times: 2 });
    expect(await test.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    expect(everything()).toEqual([]);
  });

  it.each(['operations.get', 'virtualMachines.get', 'networkInterfaces.get'])(
    'does not fail a launch: %s',
    async (on) => {
      open.cloud.faults.add({ on, fault });
      expect(await test.launch()).toMatchObject({ publicIpv4: expect.any(String) });
    },
  );

  it.each(['virtualMachines.delete', 'operations.get', 'virtualMachines.get'])('deletes no VM: %s', async (on) => {
    const { externalId } = await test.launch();
    open.cloud.faults.add({ on, fault });
    await test.cleanUp(externalId).catch(() => test.cleanUp(externalId));
    expect(everything()).toEqual([]);
  });

  it.each(['networkInterfaces.delete', 'publicIPAddresses.delete', 'disks.delete'])(
    'deletes no leaked resource: %s',
    async (on) => {
      await test.launch();
      const [vm] = open.cloud.list(VMS);
      if (vm !== undefined) open.cloud.remove(vm);
      open.cloud.faults.add({ on, fault });
      await test.cleanUpRound(() => true);
      expect(everything()).toEqual([]);
    },
  );

  it.each(['images.delete', 'operations.get'])('deletes no image: %s', async (on) => {
    const externalId = await test.upload(file);
    open.cloud.configure({ workMs: 60_000 });
    open.cloud.faults.add({ on, fault });
    await test.end(Promise.resolve(test.provider.images?.deleteImage(externalId, test.call())));
    expect(open.cloud.list(IMAGES)).toEqual([]);
  });

  it.each(['disks.put', 'disks.beginGetAccess', 'disks.endGetAccess', 'images.put', 'operations.get'])(
    'does not end a step of an upload: %s',
    async (on) => {
      open.cloud.configure({ workMs: 30_000 });
      open.cloud.faults.add({ on, fault });
      const externalId = await test.upload(file);
      expect(open.cloud.list(IMAGES).map(({ name }) => name)).toEqual([externalId]);
      expect(everything()).toEqual([]);
    },
  );
});

it('a saved operation at another address is not followed, so that its server does not get the token', async () => {
  const requests: (string | undefined)[] = [];
  const other = createServer(({ headers }, answer) => {
    requests.push(headers.authorization);
    answer.setHeader('x-ms-request-id', '1').end('{"status": "Succeeded"}');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  const { externalId } = await test.launch();
  const saved = { state: 'following', operation: `http://127.0.0.1:${port}/operations/1` };
  const resumed = await test.launch('0000000001', { saved, externalId });
  other.closeAllConnections();
  other.close();
  expect(resumed.externalId).toBe(externalId);
  expect(requests).toEqual([]);
});

describe('an error page of a gateway', () => {
  it.each([
    [429, 'throttled'],
    [503, 'transient'],
    [404, 'transient'],
  ])('with status %i is of kind %s and shows its status', async (status, code) => {
    open.cloud.faults.add({ on: 'virtualMachines.list', fault: { kind: 'proxy', status } });
    const failure = await failureOf(test.end(test.provider.listNodes(test.call())));
    expect(failure).toMatchObject({ code, outcome: 'not-applied' });
    expect(failure.message).toContain(`compute: GET virtualMachines.list: ${status} the answer is not JSON`);
  });
});
