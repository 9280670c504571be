/** Launches of VMs. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { SAMPLE_GALLERY } from '@nodepool/simulated-azure';
import { ADDRESSES, NICS, VMS, TestSite } from './test-site.js';

const site = new TestSite();

function image(change: JsonObject): JsonObject {
  return { 'cloud-images': [{ name: 'debian', username: 'zuul', ...change }] };
}

const gallery = { 'gallery-name': SAMPLE_GALLERY.name, name: SAMPLE_GALLERY.image };

describe('a launch', () => {
  it('creates a VM and its resources with one PUT, each with the tags of the node', async () => {
    const test = await site.provider();
    const launched = await test.launch();
    expect(launched.publicIpv4).toMatch(/^203\./);
    expect(launched.privateIpv4).toMatch(/^10\./);
    expect(launched.interfaceIp).toBe(launched.publicIpv4);
    expect(launched.resources).toEqual({ instances: 1, cores: 1, regionalcores: 1, ram: 512, standardbsfamily: 1 });
    expect(launched.machine).toEqual({ type: 'Standard_B1ls', market: 'on-demand' });
    expect(site.cloud.calls.count('virtualMachines.put')).toBe(1);
    expect(site.everything()).toHaveLength(4);
    for (const { tags } of site.everything()) expect(tags['nodepool_node_id']).toBe('0000000001');
  });

  it('reads only its own VM and operation, and no list', async () => {
    const test = await site.provider();
    site.cloud.calls.reset();
    await test.launch();
    const { 'operations.get': polls, ...calls } = site.cloud.calls.byOperation();
    expect(polls).toBeLessThanOrEqual(5);
    expect(calls).toEqual({ 'virtualMachines.put': 1, 'virtualMachines.get': 1, 'networkInterfaces.get': 1 });
  });

  it('assigns the addresses that the pool configures', async () => {
    const test = await site.provider({ ipv6: true, 'public-ipv6': true, 'public-ipv4': false, ipv4: true });
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
    const test = await site.provider(change);
    const { privateIpv4, publicIpv4, publicIpv6, interfaceIp } = await test.launch();
    const starts = [privateIpv4, publicIpv4, publicIpv6].map((address) => address?.replace(/(?<=[.:]).*/, ''));
    expect(starts).toEqual(expected);
    expect(interfaceIp).toBe(publicIpv4 ?? privateIpv4);
    const configurations = site.cloud.list(NICS)[0]?.properties['ipConfigurations'] as readonly JsonObject[];
    expect(configurations.map(({ properties }) => (properties as JsonObject)['privateIPAddressVersion'])).toEqual(
      versions,
    );
  });

  it('waits for its public address', async () => {
    site.cloud.configure({ addressMs: 60_000 });
    const test = await site.provider();
    const launched = await test.launch();
    expect(launched.interfaceIp).toMatch(/^203\./);
    expect(launched.publicIpv4).toBe(launched.interfaceIp);
  });

  it('can create a spot VM with an ephemeral disk, trusted launch and an identity, in a zone', async () => {
    const identity = '/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/ci';
    const test = await site.provider(
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
    const [vm] = site.cloud.list(VMS);
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
    const test = await site.provider({ 'public-ipv4': false, 'use-internal-ip': true });
    const launched = await test.launch();
    expect(launched.interfaceIp).toMatch(/^10\./);
    expect(site.cloud.list(ADDRESSES)).toEqual([]);
  });

  it('sets the tags of the label, and its dynamic tags of the request', async () => {
    const label = { tags: { department: 'R&D' }, 'dynamic-tags': { tenant: 'Tenant is {request.tenant_name}' } };
    const test = await site.provider({}, label);
    await test.launch();
    expect(site.cloud.list(VMS)[0]?.tags).toMatchObject({ department: 'R&D', tenant: 'Tenant is acme' });
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
    const test = await site.provider(image(source));
    await test.launch();
    expect(site.cloud.list(VMS)[0]?.properties).toMatchObject({ storageProfile: { imageReference: reference } });
  });

  it('uses the last image by name that matches the filter', async () => {
    for (const name of ['ci-1', 'ci-3', 'ci-2'])
      site.cloud.disks.addImage('nodepool', name, 'centralus', { use: 'ci' });
    site.cloud.disks.addImage('nodepool', 'other-9', 'centralus', {});
    const test = await site.provider(image({ 'image-filter': { tags: { use: 'ci' } } }));
    await test.launch();
    const [vm] = site.cloud.list(VMS);
    expect(JSON.stringify(vm?.properties['storageProfile'])).toContain('/images/ci-3');
  });

  it('orders the names of images by their characters, as the Python Nodepool does', async () => {
    for (const name of ['ci-2', 'ci_1', 'CI-3']) site.cloud.disks.addImage('nodepool', name, 'centralus', {});
    const test = await site.provider(image({ 'image-filter': { location: 'centralus' } }));
    await test.launch();
    const [vm] = site.cloud.list(VMS);
    expect(JSON.stringify(vm?.properties['storageProfile'])).toContain('/images/ci_1');
  });

  it('uses another matching image after a launch whose image was deleted', async () => {
    for (const name of ['ci-1', 'ci-2']) site.cloud.disks.addImage('nodepool', name, 'centralus', {});
    const test = await site.provider(image({ 'image-filter': { location: 'centralus' } }));
    const newest = site.cloud.list('Microsoft.Compute/images').find(({ name }) => name === 'ci-2');
    if (newest !== undefined) site.cloud.remove(newest);
    expect((await test.failedLaunch()).message).toContain('/images/ci-2');
    await test.launch('0000000002');
    const [vm] = site.cloud.list(VMS);
    expect(JSON.stringify(vm?.properties['storageProfile'])).toContain('/images/ci-1');
  });

  it('can generate a password that Azure accepts', async () => {
    site.cloud.disks.addImage('nodepool', 'own', 'centralus', {});
    const [own] = site.cloud.list('Microsoft.Compute/images');
    const test = await site.provider(image({ 'image-id': own?.id ?? '', 'generate-password': true }));
    await test.launch();
    expect(site.cloud.list(VMS)).toHaveLength(1);
  });

  it('fails with configuration if the location does not have the size', async () => {
    const test = await site.provider({}, { 'hardware-profile': { 'vm-size': 'Standard_X9' } });
    expect(test.provider.labelReady('main', 'small')).toMatchObject({ ready: false });
    expect((await test.failedLaunch()).code).toBe('configuration');
    expect(site.everything()).toEqual([]);
  });

  it('finds its size if the location is configured by its display name', async () => {
    const test = await site.provider({ location: 'Central US' });
    await test.launch();
    expect(site.cloud.list(VMS)).toHaveLength(1);
  });

  it('can use another size of the label if one of them does not exist', async () => {
    const sizes = [{ 'vm-size': 'Standard_X9' }, { 'vm-size': 'Standard_B2s' }];
    const label = { name: 'small', 'cloud-image': 'debian', 'hardware-profiles': sizes };
    const test = await site.provider({}, {}, { labels: [label] });
    expect(test.provider.labelReady('main', 'small')).toEqual({ ready: true });
    expect((await test.failedLaunch()).message).toContain('Standard_X9');
    await test.launch(undefined, { machineType: 'Standard_B2s' });
    expect(JSON.stringify(site.cloud.list(VMS)[0]?.properties['hardwareProfile'])).toContain('Standard_B2s');
  });
});
