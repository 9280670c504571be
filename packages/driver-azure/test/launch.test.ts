/** Launches and deletions of VMs, with and without faults. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { sleep, type JsonObject } from '@nodepool/core';
import { SAMPLE_GALLERY, type Resource } from '@nodepool/simulated-azure';
import { VirtualClock } from '@nodepool/core/testing';
import { callOn, failureOf } from '@nodepool/driver-kit';
import { readAuth } from '../src/auth.js';
import { Arm } from '../src/client/arm.js';
import { Client } from '../src/client/client.js';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';

const VMS = 'Microsoft.Compute/virtualMachines';
const NICS = 'Microsoft.Network/networkInterfaces';
const ADDRESSES = 'Microsoft.Network/publicIPAddresses';
const DISKS = 'Microsoft.Compute/disks';
const ALL = [VMS, NICS, ADDRESSES, DISKS] as const;

const gallery = { 'gallery-name': SAMPLE_GALLERY.name, name: SAMPLE_GALLERY.image };

let open: OpenCloud;
const started: TestProvider[] = [];

beforeEach(async () => {
  open = await openCloud();
});

afterEach(async () => {
  for (const test of started.splice(0)) await test.stop();
  await open.cloud.close();
});

async function provider(...change: Parameters<typeof section>): Promise<TestProvider> {
  const test = await TestProvider.started(open, section(...change));
  started.push(test);
  return test;
}

const everything = (): readonly Resource[] => ALL.flatMap((type) => open.cloud.list(type));

function image(change: JsonObject): JsonObject {
  return { 'cloud-images': [{ name: 'debian', username: 'zuul', ...change }] };
}

describe('a launch', () => {
  it('creates a VM and its resources with one PUT, each with the tags of the node', async () => {
    const test = await provider();
    const launched = await test.launch();
    expect(launched.publicIpv4).toMatch(/^203\./);
    expect(launched.privateIpv4).toMatch(/^10\./);
    expect(launched.interfaceIp).toBe(launched.publicIpv4);
    expect(launched.resources).toEqual({ instances: 1, cores: 1, regionalcores: 1, ram: 512, standardbsfamily: 1 });
    expect(launched.machine).toEqual({ type: 'Standard_B1ls', market: 'on-demand' });
    expect(open.cloud.calls.count('virtualMachines.put')).toBe(1);
    expect(everything()).toHaveLength(4);
    for (const { tags } of everything()) expect(tags['nodepool_node_id']).toBe('0000000001');
  });

  it('reads only its own VM and operation, and no list', async () => {
    const test = await provider();
    open.cloud.calls.reset();
    await test.launch();
    const { 'operations.get': polls, ...calls } = open.cloud.calls.byOperation();
    expect(polls).toBeLessThanOrEqual(5);
    expect(calls).toEqual({ 'virtualMachines.put': 1, 'virtualMachines.get': 1, 'networkInterfaces.get': 1 });
  });

  it('assigns the addresses that the pool configures', async () => {
    const test = await provider({ ipv6: true, 'public-ipv6': true, 'public-ipv4': false, ipv4: true });
    const launched = await test.launch();
    expect(launched.publicIpv4).toBeUndefined();
    expect(launched.privateIpv4).toMatch(/^10\./);
    expect(launched.publicIpv6).toMatch(/^2001:db8::/);
    expect(launched.interfaceIp).toBe(launched.publicIpv6);
  });

  it.each([
    ['only ipv6', { ipv6: true }, ['10.', '203.', undefined], ['IPv4', 'IPv6']],
    ['only public-ipv6', { 'public-ipv6': true }, ['10.', '203.', '2001:'], ['IPv4', 'IPv6']],
    ['only ipv4: false', { ipv4: false }, ['10.', '203.', undefined], ['IPv4']],
    [
      'only private addresses',
      { ipv4: false, ipv6: true, 'public-ipv4': false },
      ['10.', undefined, undefined],
      ['IPv4', 'IPv6'],
    ],
  ])('has a private IPv4 address with %s', async (_what, change, expected, versions) => {
    const test = await provider(change);
    const { privateIpv4, publicIpv4, publicIpv6, interfaceIp } = await test.launch();
    const starts = [privateIpv4, publicIpv4, publicIpv6].map((address) => address?.replace(/(?<=[.:]).*/, ''));
    expect(starts).toEqual(expected);
    expect(interfaceIp).toBe(publicIpv4 ?? privateIpv4);
    const configurations = open.cloud.list(NICS)[0]?.properties['ipConfigurations'] as readonly JsonObject[];
    expect(configurations.map(({ properties }) => (properties as JsonObject)['privateIPAddressVersion'])).toEqual(
      versions,
    );
  });

  it('waits for its public address', async () => {
    open.cloud.configure({ addressMs: 60_000 });
    const test = await provider();
    const launched = await test.launch();
    expect(launched.interfaceIp).toMatch(/^203\./);
    expect(launched.publicIpv4).toBe(launched.interfaceIp);
  });

  it('can create a spot VM with an ephemeral disk, trusted launch and an identity, in a zone', async () => {
    const identity = '/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/ci';
    const test = await provider(
      {
        ...image({ 'image-reference': { publisher: 'Debian', offer: 'debian-12', sku: '12-gen2', version: 'latest' } }),
      },
      {
        'hardware-profile': { 'vm-size': 'Standard_D4ds_v4' },
        'ephemeral-os-disk': true,
        'security-profile': { 'security-type': 'TrustedLaunch', vtpm: false },
        spot: true,
        'spot-max-price': 0.25,
        'volume-type': 'Standard_LRS',
        identities: [identity],
      },
    );
    const launched = await test.launch('0000000001', { availabilityZone: '2' });
    expect(launched.az).toBe('2');
    expect(launched.resources).toEqual({ instances: 1, cores: 4, ram: 16_384, lowprioritycores: 4 });
    expect(launched.machine?.market).toBe('spot');
    const [vm] = open.cloud.list(VMS);
    expect(vm?.extra).toMatchObject({ zones: ['2'], identity: { userAssignedIdentities: { [identity]: {} } } });
    expect(vm?.properties).toMatchObject({
      priority: 'Spot',
      evictionPolicy: 'Delete',
      billingProfile: { maxPrice: 0.25 },
      securityProfile: {
        securityType: 'TrustedLaunch',
        uefiSettings: { secureBootEnabled: true, vTpmEnabled: false },
      },
      storageProfile: {
        osDisk: { diffDiskSettings: { option: 'Local' }, managedDisk: { storageAccountType: 'Standard_LRS' } },
      },
    });
  });

  it('assigns no public address in a pool with private addresses', async () => {
    const test = await provider({ 'public-ipv4': false, 'use-internal-ip': true });
    const launched = await test.launch();
    expect(launched.interfaceIp).toMatch(/^10\./);
    expect(open.cloud.list(ADDRESSES)).toEqual([]);
  });

  it('sets the tags of the label, and its dynamic tags of the request', async () => {
    const label = { tags: { department: 'R&D' }, 'dynamic-tags': { tenant: 'Tenant is {request.tenant_name}' } };
    const test = await provider({}, label);
    await test.launch();
    expect(open.cloud.list(VMS)[0]?.tags).toMatchObject({ department: 'R&D', tenant: 'Tenant is acme' });
  });

  it.each([
    [
      'a marketplace image',
      { 'image-reference': { publisher: 'Debian', offer: 'debian-12', sku: '12-gen2', version: 'latest' } },
      { offer: 'debian-12', sku: '12-gen2' },
    ],
    [
      'a community gallery',
      { 'community-gallery-image': { ...gallery, version: '1.0.0' } },
      { communityGalleryImageId: `/CommunityGalleries/${SAMPLE_GALLERY.name}/Images/debian/Versions/1.0.0` },
    ],
    [
      'a shared gallery',
      { 'shared-gallery-image': { ...gallery, version: 'latest' } },
      { sharedGalleryImageId: `/SharedGalleries/${SAMPLE_GALLERY.name}/Images/debian/Versions/latest` },
    ],
    [
      'a gallery without a version',
      { 'shared-gallery-image': gallery },
      { sharedGalleryImageId: `/SharedGalleries/${SAMPLE_GALLERY.name}/Images/debian` },
    ],
  ])('uses %s', async (_what, source, reference) => {
    const test = await provider(image(source));
    await test.launch();
    expect(open.cloud.list(VMS)[0]?.properties).toMatchObject({ storageProfile: { imageReference: reference } });
  });

  it('uses the last image by name that matches the filter', async () => {
    for (const name of ['ci-1', 'ci-3', 'ci-2'])
      open.cloud.disks.addImage('nodepool', name, 'centralus', { use: 'ci' });
    open.cloud.disks.addImage('nodepool', 'other-9', 'centralus', {});
    const test = await provider(image({ 'image-filter': { tags: { use: 'ci' } } }));
    await test.launch();
    const [vm] = open.cloud.list(VMS);
    expect(JSON.stringify(vm?.properties['storageProfile'])).toContain('/images/ci-3');
  });

  it('orders the names of images by their characters, as the Python Nodepool does', async () => {
    for (const name of ['ci-2', 'ci_1', 'CI-3']) open.cloud.disks.addImage('nodepool', name, 'centralus', {});
    const test = await provider(image({ 'image-filter': { location: 'centralus' } }));
    await test.launch();
    const [vm] = open.cloud.list(VMS);
    expect(JSON.stringify(vm?.properties['storageProfile'])).toContain('/images/ci_1');
  });

  it('uses another matching image after a launch whose image was deleted', async () => {
    for (const name of ['ci-1', 'ci-2']) open.cloud.disks.addImage('nodepool', name, 'centralus', {});
    const test = await provider(image({ 'image-filter': { location: 'centralus' } }));
    const newest = open.cloud.list('Microsoft.Compute/images').find(({ name }) => name === 'ci-2');
    if (newest !== undefined) open.cloud.remove(newest);
    expect((await test.failedLaunch()).message).toContain('/images/ci-2');
    await test.launch('0000000002');
    const [vm] = open.cloud.list(VMS);
    expect(JSON.stringify(vm?.properties['storageProfile'])).toContain('/images/ci-1');
  });

  it('can generate a password that Azure accepts', async () => {
    open.cloud.disks.addImage('nodepool', 'own', 'centralus', {});
    const [own] = open.cloud.list('Microsoft.Compute/images');
    const test = await provider(image({ 'image-id': own?.id ?? '', 'generate-password': true }));
    await test.launch();
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('fails with configuration if the location does not have the size', async () => {
    const test = await provider({}, { 'hardware-profile': { 'vm-size': 'Standard_X9' } });
    expect(test.provider.labelReady('main', 'small')).toMatchObject({ ready: false });
    expect((await test.failedLaunch()).code).toBe('configuration');
    expect(everything()).toEqual([]);
  });

  it('finds its size if the location is configured by its display name', async () => {
    const test = await provider({ location: 'Central US' });
    await test.launch();
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('can use another size of the label if one of them does not exist', async () => {
    const sizes = [{ 'vm-size': 'Standard_X9' }, { 'vm-size': 'Standard_B2s' }];
    const label = { name: 'small', 'cloud-image': 'debian', 'hardware-profiles': sizes };
    const test = await provider({}, {}, { labels: [label] });
    expect(test.provider.labelReady('main', 'small')).toEqual({ ready: true });
    expect((await test.failedLaunch()).message).toContain('Standard_X9');
    await test.launch(undefined, { machineType: 'Standard_B2s' });
    expect(JSON.stringify(open.cloud.list(VMS)[0]?.properties['hardwareProfile'])).toContain('Standard_B2s');
  });
});

describe('a launch under faults', () => {
  it('can use a size that the location has got since the last list of sizes', async () => {
    open.cloud.configure({ missingSizes: ['Standard_B1ls'] });
    const test = await provider();
    expect((await test.failedLaunch()).message).toContain('no VM size');
    open.cloud.configure({ missingSizes: [] });
    await test.end(sleep(open.time.clock, 10_000));
    await test.launch();
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('waits for a VM that Azure does not know yet after it accepted its creation', async () => {
    const test = await provider();
    const fault = { kind: 'status', status: 404, code: 'ResourceNotFound' } as const;
    open.cloud.faults.add({ on: 'virtualMachines.get', fault, times: 3 });
    const { externalId } = await test.launch();
    expect(open.cloud.list(VMS).map(({ name }) => name)).toEqual([externalId]);
    expect(open.cloud.calls.count('virtualMachines.put')).toBe(1);
  });

  it('finds its VM by name if the answer is lost', async () => {
    const test = await provider();
    open.cloud.faults.add({ on: 'virtualMachines.put', fault: { kind: 'cut', when: 'after' } });
    await test.launch();
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('ends when Azure throttles the creation, and the next one waits for the time that it demands', async () => {
    const test = await provider();
    open.cloud.faults.add({
      on: 'virtualMachines.put',
      fault: { kind: 'status', status: 429, code: 'TooManyRequests', retryAfter: 30 },
    });
    const before = open.time.clock.monotonic();
    const failure = await test.failedLaunch();
    expect(failure).toMatchObject({ code: 'throttled', outcome: 'not-applied', retryAfterMs: 30_000 });
    await test.launch();
    expect(open.time.clock.monotonic() - before).toBeGreaterThanOrEqual(30_000);
  });

  it.each([
    ['virtualMachines.put', 409, 'RetryableError'],
    ['operations.get', 429, 'RetryableErrorDueToAnotherOperation'],
    ['virtualMachines.get', 500, 'InternalServerError'],
    ['networkInterfaces.get', 503, 'ServiceUnavailable'],
  ])('retries if the answer to %s is %d %s', async (on, status, code) => {
    const test = await provider();
    open.cloud.faults.add({ on, fault: { kind: 'status', status, code } });
    await test.launch();
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('logs in again if its token is refused', async () => {
    const test = await provider();
    open.cloud.revokeTokens();
    await test.launch();
    expect(open.cloud.calls.count('login.token')).toBe(2);
  });

  it('reads the VM itself if Azure has deleted the operation', async () => {
    const test = await provider();
    const launch = test.begin();
    await open.time.until(() => open.cloud.list(VMS).length > 0, 60_000);
    open.cloud.forgetOperations();
    expect((await test.end(launch)).publicIpv4).toBeDefined();
  });

  it.each([
    ['AllocationFailed', 'We do not have sufficient capacity.', 'capacity'],
    ['OperationNotAllowed', 'It results in exceeding approved cores quota.', 'quota'],
    ['OSProvisioningTimedOut', 'OS Provisioning did not finish.', 'instance-failed'],
  ])('fails with the right kind if the accepted operation ends with %s', async (code, message, expected) => {
    const test = await provider();
    open.cloud.faults.failNextVm({ code, message });
    expect(await test.failedLaunch()).toMatchObject({ code: expected, outcome: 'applied' });
  });

  it('reports the reason of a failure although Azure has deleted the operation', async () => {
    const test = await provider();
    open.cloud.faults.failNextVm({ code: 'OSProvisioningTimedOut', message: 'OS provisioning did not finish' });
    const launch = test.begin();
    await open.time.until(() => open.cloud.list(VMS).length > 0, 60_000);
    open.cloud.forgetOperations();
    expect((await failureOf(test.end(launch))).message).toContain('OS provisioning did not finish');
  });

  it('fails with configuration in a zone that the location does not have', async () => {
    const test = await provider();
    expect((await test.failedLaunch('0000000001', { availabilityZone: '9' })).code).toBe('configuration');
  });

  it('logs in with a token file of Kubernetes', async () => {
    const auth = JSON.parse(readFileSync(open.cloud.authFile, 'utf8')) as Record<string, string>;
    const folder = mkdtempSync(join(tmpdir(), 'azure-token-'));
    const [authFile, federatedTokenFile] = [join(folder, 'auth.json'), join(folder, 'token')];
    const { clientSecret = '', ...rest } = auth;
    writeFileSync(federatedTokenFile, clientSecret);
    writeFileSync(authFile, JSON.stringify({ ...rest, authentication: 'workload-identity', federatedTokenFile }));
    const test = await provider({ 'auth-path': authFile });
    await test.launch();
    expect(open.cloud.list(VMS)).toHaveLength(1);
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['an invalid tenant', { tenantId: 'acme north' }],
    ['a token file that is missing', { authentication: 'workload-identity', federatedTokenFile: '/does/not/exist' }],
    ['a workload identity without a token file', { authentication: 'workload-identity' }],
  ])('is a configuration or login error with %s', async (_what, change) => {
    const auth = JSON.parse(readFileSync(open.cloud.authFile, 'utf8')) as Record<string, string>;
    const folder = mkdtempSync(join(tmpdir(), 'azure-auth-'));
    const authFile = join(folder, 'auth.json');
    writeFileSync(authFile, JSON.stringify({ ...auth, ...change }));
    const error = await failureOf(provider({ 'auth-path': authFile }));
    expect(['configuration', 'auth']).toContain(error.code);
    expect(error.message).not.toContain(auth['clientSecret']);
    rmSync(folder, { recursive: true });
  });

  it('fails with quota if the VM family of its size has no quota', async () => {
    open.cloud.setLimit('standardBSFamily', 0);
    const test = await provider();
    expect((await test.failedLaunch()).code).toBe('quota');
  });

  it('resumes the launch of another process, and creates nothing twice', async () => {
    const first = await provider();
    let saved: unknown;
    const launch = first.begin('0000000001', {
      save: async (progress) => {
        saved = progress.machine;
      },
    });
    launch.catch(() => undefined);
    await open.time.until(() => saved !== undefined, 60_000);
    await first.stop();
    const second = await provider();
    const [vm] = open.cloud.list(VMS);
    const launched = await second.launch('0000000001', { saved: saved as null, externalId: vm?.name ?? null });
    expect(launched.externalId).toBe(vm?.name);
    expect(open.cloud.calls.count('virtualMachines.put')).toBe(1);
  });

  it('resumes a launch of the Python Nodepool, which records no attempt and names the VM differently', async () => {
    const first = await provider();
    let name: unknown;
    const launch = first.begin('0000000001', {
      save: async ({ externalId }) => {
        name = externalId;
      },
    });
    launch.catch(() => undefined);
    await open.time.until(() => name !== undefined, 60_000);
    await first.stop();
    const second = await provider();
    const saved: unknown[] = [];
    const launched = await second.launch('0000000001', {
      externalId: name as string,
      tags: second.tagsOf('0000000001', 'new-attempt'),
      save: async ({ externalId }) => void saved.push(externalId),
    });
    expect([...new Set([...saved, launched.externalId])]).toEqual([name]);
    expect(open.cloud.calls.count('virtualMachines.put')).toBe(1);
  });
});

describe('a call that waits for the rate limit', () => {
  it('has its whole time for the answer, so that a long queue does not make all launches fail', async () => {
    const clock = new VirtualClock();
    const arm = new Arm({
      readAuth: () => readAuth(open.cloud.authFile),
      clock,
      callsPerSecond: 1 / 60,
      onApiCall: () => undefined,
    });
    const client = new Client(arm, { resourceGroup: 'nodepool', location: 'centralus' });
    const call = { ...callOn(clock), deadline: 10_000 };
    await client.deleteVm('first', call);
    const second = client.deleteVm('second', call);
    await clock.advance(60_000);
    await clock.advance(9000);
    expect(await second).toMatchObject({ nothing: true });
    arm.stop();
  });
});

describe('a deletion', () => {
  it('deletes everything that was created with the VM', async () => {
    const test = await provider();
    const { externalId } = await test.launch();
    await test.cleanUp(externalId);
    expect(everything()).toEqual([]);
  });

  it('is reported if Azure does not complete it', async () => {
    const test = await provider();
    const { externalId } = await test.launch();
    open.cloud.configure({ deleteMs: 200_000 });
    const reported: string[] = [];
    await test.cleanUp(externalId, undefined, { onWaiting: (reason) => void reported.push(reason) });
    expect(reported).toEqual([
      expect.stringMatching(/^Azure has accepted the deletion of VM np\S+, and its operation/),
    ]);
    expect(open.cloud.calls.count('virtualMachines.delete')).toBe(1);
  });

  it('succeeds for a nonexistent VM', async () => {
    const test = await provider();
    await test.cleanUp('np-never-was');
    expect(open.cloud.calls.count('virtualMachines.delete')).toBe(1);
  });

  it('deletes the VM in its resource group after that of the provider was changed', async () => {
    const { externalId } = await (await provider()).launch();
    const changed = await provider({ 'resource-group': 'other' });
    await changed.cleanUp(externalId);
    expect(everything()).toEqual([]);
  });

  it('keeps a VM of the same name in another resource group that is of another launch attempt', async () => {
    const { externalId } = await (await provider()).launch();
    const [vm] = open.cloud.list(VMS);
    if (vm !== undefined) vm.tags = { ...vm.tags, nodepool_launch_attempt: 'another' };
    const changed = await provider({ 'resource-group': 'other' });
    await changed.cleanUp(externalId);
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });

  it('is repeated if the VM still exists after Azure accepted it', async () => {
    const test = await provider();
    const { externalId } = await test.launch();
    const fault = { kind: 'status', status: 202, code: 'Accepted' } as const;
    open.cloud.faults.add({ on: 'virtualMachines.delete', fault });
    await test.cleanUp(externalId);
    expect(open.cloud.calls.count('virtualMachines.delete')).toBe(2);
    expect(everything()).toEqual([]);
  });

  it('succeeds after a lost answer and an error', async () => {
    const test = await provider();
    const { externalId } = await test.launch();
    open.cloud.faults.add({
      on: 'virtualMachines.delete',
      fault: { kind: 'status', status: 500, code: 'InternalServerError' },
    });
    open.cloud.faults.add({ on: 'virtualMachines.delete', after: 1, fault: { kind: 'cut', when: 'after' } });
    await test.cleanUp(externalId);
    expect(everything()).toEqual([]);
  });
});

describe('a hundred concurrent nodes', () => {
  it('are created and deleted with at most twelve calls each, and leave no resources', async () => {
    const test = await provider();
    open.cloud.calls.reset();
    const ids = Array.from({ length: 100 }, (_, index) => String(index + 1).padStart(10, '0'));
    const nodes = await test.end(Promise.all(ids.map((id) => test.begin(id))));
    expect(new Set(nodes.map(({ publicIpv4 }) => publicIpv4)).size).toBe(100);
    await test.end(Promise.all(nodes.map(({ externalId }, index) => test.beginCleanUp(externalId, ids[index]))));
    expect(everything()).toEqual([]);
    expect(open.cloud.calls.count() / 100).toBeLessThanOrEqual(12);
  });
});

describe('leaked resources', () => {
  it('are found by their tags and deleted in an order that Azure accepts', async () => {
    const test = await provider();
    await test.launch();
    const [vm] = open.cloud.list(VMS);
    if (vm !== undefined) open.cloud.remove(vm);
    // The VM's resources still exist; the address is in use by the interface.
    expect(everything().map(({ type }) => type)).toEqual([NICS, ADDRESSES, DISKS]);
    await test.cleanUpRound(() => true);
    expect(everything()).toEqual([]);
  });

  it('are found on all pages of the lists, also after an empty page', async () => {
    open.cloud.configure({ pageLimit: 1, emptyPages: true });
    const test = await provider();
    for (const id of ['0000000001', '0000000002']) await test.launch(id);
    expect(await test.end(test.provider.listNodes(test.call()))).toHaveLength(2);
    await test.cleanUpRound(() => true);
    expect(everything()).toEqual([]);
  });

  it('are not reported if they belong to other owners', async () => {
    open.cloud.disks.addImage('nodepool', 'of-others', 'centralus', {});
    open.cloud.machines.addForeign('other');
    const test = await provider();
    expect(await test.cleanUpRound(() => true)).toEqual([]);
    expect(open.cloud.list(VMS)).toHaveLength(1);
  });
});
