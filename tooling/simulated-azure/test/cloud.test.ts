/** Refusals and answers of the simulated Azure, as any client sees them. */

import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isJsonObject, stringAt, type JsonObject } from '@nodepool/core';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { ACCOUNT, SAMPLE_SUBNET_ID, startSimulatedAzure, type SimulatedAzure } from '../src/index.js';

const GROUP = `/subscriptions/${ACCOUNT.subscriptionId}/resourceGroups/nodepool/providers`;
const VM = `${GROUP}/Microsoft.Compute/virtualMachines/vm`;
const DEBIAN = { publisher: 'Debian', offer: 'debian-12', sku: '12', version: 'latest' };
const GEN2 = { ...DEBIAN, sku: '12-gen2' };
const PATHS = ['virtualMachines', 'disks', 'images'].map((type) => `Microsoft.Compute/${type}`);

let clock: VirtualClock;
let cloud: SimulatedAzure;
let token: string;

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: JsonObject;
}

beforeEach(async () => {
  clock = new VirtualClock();
  cloud = await startSimulatedAzure({ clock, random: seededRandom(3), settings: { pageLimit: 2 } });
  const secrets = { client_id: ACCOUNT.clientId, client_secret: ACCOUNT.clientSecret };
  const login = await send('POST', `/${ACCOUNT.tenantId}/oauth2/v2.0/token`, new URLSearchParams(secrets).toString());
  token = textAt(login.body, 'access_token');
});

afterEach(() => cloud.close());

function send(method: string, path: string, content = ''): Promise<Reply> {
  const auth = JSON.parse(readFileSync(cloud.authFile, 'utf8')) as { readonly caFile: string };
  const options = {
    method,
    ca: readFileSync(auth.caFile),
    headers: { authorization: `Bearer ${token}` },
    agent: false,
  } as const;
  return new Promise((resolve, reject) => {
    const call = request(new URL(path, cloud.url), options, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () => {
        const text = Buffer.concat(pieces).toString('utf8');
        const body = text === '' ? {} : (JSON.parse(text) as JsonObject);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body });
      });
    });
    call.on('error', reject);
    call.end(content);
  });
}

function arm(method: string, path: string, body?: JsonObject): Promise<Reply> {
  return send(method, `${path}?api-version=2026-03-01`, body === undefined ? '' : JSON.stringify(body));
}

function nicWith(ipConfigurations: readonly JsonObject[], deleteOption = 'Delete'): JsonObject {
  return { name: 'vm-nic', properties: { deleteOption, ipConfigurations } };
}

/** Returns a network profile with one interface and these IP configurations. */
function network(properties: readonly JsonObject[], deleteOption = 'Delete'): JsonObject {
  const subnet = { id: SAMPLE_SUBNET_ID };
  const configurations = properties.map((one, index) => ({ name: `ip-${index}`, properties: { subnet, ...one } }));
  const networkInterfaceConfigurations = [nicWith(configurations, deleteOption)];
  return { networkProfile: { networkApiVersion: '2022-11-01', networkInterfaceConfigurations } };
}

function address(change: JsonObject = {}, deleteOption = 'Delete'): JsonObject {
  const properties = { publicIPAllocationMethod: 'Static', deleteOption };
  return { publicIPAddressConfiguration: { name: 'vm-ip', sku: { name: 'Standard' }, properties, ...change } };
}

function storage(imageReference: JsonObject, osDisk: JsonObject = {}): JsonObject {
  return { storageProfile: { imageReference, osDisk: { createOption: 'FromImage', ...osDisk } } };
}

function vm(change: JsonObject = {}, top: JsonObject = {}): JsonObject {
  const configuration = { name: 'v4', properties: { subnet: { id: SAMPLE_SUBNET_ID } } };
  const nic = nicWith([configuration]);
  return {
    location: 'centralus',
    ...top,
    properties: {
      hardwareProfile: { vmSize: 'Standard_B1ls' },
      storageProfile: { imageReference: DEBIAN, osDisk: { createOption: 'FromImage', deleteOption: 'Delete' } },
      osProfile: { computerName: 'vm', adminUsername: 'zuul', adminPassword: 'Good-Password-1' },
      networkProfile: { networkApiVersion: '2022-11-01', networkInterfaceConfigurations: [nic] },
      ...change,
    },
  };
}

function codeOf({ status, body }: Reply): string {
  const { error } = body;
  return `${status} ${isJsonObject(error) ? textAt(error, 'code') : ''}`;
}

function textAt(body: JsonObject, key: string): string {
  return stringAt(body, key) ?? '';
}

describe('a virtual machine', () => {
  it('is created by an operation, and is deleted with its resources', async () => {
    const accepted = await arm('PUT', VM, vm());
    expect(accepted.status).toBe(201);
    const operation = String(accepted.headers['azure-asyncoperation']);
    expect((await send('GET', operation)).body).toMatchObject({ status: 'InProgress' });
    await clock.advance(20_000);
    expect((await send('GET', operation)).body).toMatchObject({ status: 'Succeeded' });
    expect((await arm('GET', VM)).body).toMatchObject({ properties: { provisioningState: 'Succeeded' } });
    expect((await arm('DELETE', VM)).status).toBe(202);
    await clock.advance(10_000);
    expect(codeOf(await arm('GET', VM))).toBe('404 ResourceNotFound');
    expect(cloud.list('Microsoft.Network/networkInterfaces')).toEqual([]);
    expect(cloud.list('Microsoft.Compute/disks')).toEqual([]);
    expect((await arm('DELETE', VM)).status).toBe(204);
  });

  it('contains no secrets when it is read', async () => {
    await arm('PUT', VM, vm({ userData: 'aGlkZGVu' }));
    const shown = JSON.stringify((await arm('GET', VM)).body);
    expect(shown).not.toContain('Good-Password-1');
    expect(shown).not.toContain('aGlkZGVu');
  });

  it.each([
    ['an unknown field', { hardwareProfil: {} }, '400 InvalidRequestContent'],
    ['a value of another type', { userData: 5 }, '400 InvalidRequestContent'],
    ['an unknown size', { hardwareProfile: { vmSize: 'Standard_X' } }, '400 InvalidParameter'],
    [
      'a size that is unavailable to the account',
      { hardwareProfile: { vmSize: 'Standard_M128s' } },
      '409 SkuNotAvailable',
    ],
    [
      'a weak password',
      { osProfile: { computerName: 'vm', adminUsername: 'zuul', adminPassword: 'weak' } },
      '400 InvalidParameter',
    ],
    ['no way to log in', { osProfile: { computerName: 'vm', adminUsername: 'zuul' } }, '400 InvalidParameter'],
    ['an unknown publisher', storage({ ...DEBIAN, publisher: 'Nobody' }), '404 PlatformImageNotFound'],
    ['an unknown value of an enumeration', storage(DEBIAN, { createOption: 'Nonsense' }), '400 InvalidRequestContent'],
    ['a disk that is not created from the image', storage(DEBIAN, { createOption: 'Empty' }), '400 InvalidParameter'],
    ['a disk smaller than its image', storage(DEBIAN, { diskSizeGB: 10 }), '400 InvalidParameter'],
    [
      'a malformed gallery id',
      storage({ communityGalleryImageId: '/CommunityGalleries/g/debian' }),
      '400 InvalidParameter',
    ],
    [
      'an unknown gallery',
      storage({ sharedGalleryImageId: '/SharedGalleries/g/Images/i' }),
      '404 GalleryImageNotFound',
    ],
    ['a malformed image id', storage({ id: '/subscriptions/s/galleries/x' }), '400 InvalidParameter'],
    ['no image', storage({}), '400 InvalidParameter'],
    ['no interface', { networkProfile: {} }, '400 InvalidParameter'],
    ['an IPv6-only interface', network([{ privateIPAddressVersion: 'IPv6' }]), '400 InvalidRequestFormat'],
    ['an interface without addresses', network([]), '400 InvalidRequestFormat'],
    [
      'no version of the network service',
      { networkProfile: { networkInterfaceConfigurations: [nicWith([])] } },
      '400 InvalidParameter',
    ],
    ['a Basic address', network([address({ sku: { name: 'Basic' } })]), '400 IPv4BasicSkuPublicIpCountLimitReached'],
    ['an address without SKU', network([address({ sku: {} })]), '400 IPv4BasicSkuPublicIpCountLimitReached'],
    [
      'trusted launch of a Generation 1 image',
      { securityProfile: { securityType: 'TrustedLaunch' } },
      '400 BadRequest',
    ],
    [
      'a Generation 2 image on a size without it',
      { ...storage(GEN2), hardwareProfile: { vmSize: 'Standard_A2_v2' } },
      '400 BadRequest',
    ],
    ['an eviction policy of a regular VM', { evictionPolicy: 'Delete' }, '400 InvalidParameter'],
    [
      'an ephemeral disk that does not fit',
      storage(DEBIAN, { caching: 'ReadOnly', diffDiskSettings: { option: 'Local' } }),
      '409 OperationNotAllowed',
    ],
    ['custom data that is not base64', { userData: 'plain text' }, '400 InvalidParameter'],
  ])('is refused with %s', async (_what, change, expected) => {
    expect(codeOf(await arm('PUT', VM, vm(change)))).toBe(expected);
  });

  it.each([
    ['an unknown location', {}, { location: 'atlantis' }, '400 LocationNotAvailableForResourceType'],
    ['a subnet of another location', {}, { location: 'eastus' }, '400 InvalidResourceReference'],
    ['a zone that the location does not have', {}, { zones: ['9'] }, '400 InvalidAvailabilityZone'],
    ['a tag that is too long', {}, { tags: { a: 'x'.repeat(257) } }, '400 InvalidTagNameCharacters'],
    ['a malformed identity', {}, { identity: { type: 'UserAssigned' } }, '400 InvalidIdentityValues'],
  ])('is refused with %s', async (_what, change, top, expected) => {
    expect(codeOf(await arm('PUT', VM, vm(change, top)))).toBe(expected);
  });

  it('is refused with a name of 70 characters', async () => {
    expect(codeOf(await arm('PUT', `${VM}${'x'.repeat(68)}`, vm()))).toBe('400 InvalidParameter');
  });

  it('is not changed by an identical PUT, and refuses a different one', async () => {
    expect((await arm('PUT', VM, vm())).status).toBe(201);
    const again = await arm('PUT', VM, vm());
    expect([again.status, again.body['name']]).toEqual([200, 'vm']);
    expect(cloud.list('Microsoft.Compute/disks')).toHaveLength(1);
    expect(codeOf(await arm('PUT', VM, vm({ userData: 'eA==' })))).toBe('409 PropertyChangeNotAllowed');
  });

  it('does not delete resources with the delete option Detach', async () => {
    await arm(
      'PUT',
      VM,
      vm({ ...network([address({}, 'Detach')], 'Detach'), ...storage(DEBIAN, { deleteOption: 'Detach' }) }),
    );
    await arm('DELETE', VM);
    await clock.advance(10_000);
    expect(cloud.list('Microsoft.Compute/disks')).toHaveLength(1);
    expect(cloud.list('Microsoft.Network/networkInterfaces')).toHaveLength(1);
    expect(cloud.list('Microsoft.Network/publicIPAddresses')).toHaveLength(1);
    // A part can be deleted when its VM no longer exists.
    expect((await arm('DELETE', `${GROUP}/Microsoft.Network/networkInterfaces/vm-nic`)).status).toBe(202);
  });

  it('contains the reason of a failure only in its instance view', async () => {
    cloud.faults.failNextVm({ code: 'OSProvisioningTimedOut', message: 'it did not boot' });
    await arm('PUT', VM, vm());
    await clock.advance(20_000);
    const plain = await arm('GET', VM);
    expect(plain.body).toMatchObject({ properties: { provisioningState: 'Failed' } });
    expect(JSON.stringify(plain.body)).not.toContain('it did not boot');
    expect(JSON.stringify((await send('GET', `${VM}?api-version=2025-04-01&$expand=instanceView`)).body)).toContain(
      'it did not boot',
    );
    expect(JSON.stringify((await arm('GET', `${VM}/instanceView`)).body)).toContain('it did not boot');
  });

  it('accepts only tags in a PATCH', async () => {
    await arm('PUT', VM, vm());
    expect((await arm('PATCH', VM, { tags: { a: 'b' } })).body).toMatchObject({ tags: { a: 'b' } });
    expect(codeOf(await arm('PATCH', VM, { zones: ['1'] }))).toBe('409 PropertyChangeNotAllowed');
  });

  it('is refused if the quota is exhausted', async () => {
    cloud.setLimit('cores', 0);
    expect(codeOf(await arm('PUT', VM, vm()))).toBe('409 OperationNotAllowed');
  });

  it('protects its disk and interface from deletion', async () => {
    await arm('PUT', VM, vm());
    expect(codeOf(await arm('DELETE', `${GROUP}/Microsoft.Network/networkInterfaces/vm-nic`))).toBe('400 NicInUse');
    expect(codeOf(await arm('DELETE', `${GROUP}/Microsoft.Compute/disks/vm_OsDisk_1`))).toBe('409 OperationNotAllowed');
  });
});

describe('resources', () => {
  it('can be read by their names', async () => {
    await arm('PUT', VM, vm(network([address()])));
    const parts = ['Compute/disks/vm_OsDisk_1', 'Network/networkInterfaces/vm-nic', 'Network/publicIPAddresses/vm-ip'];
    const networks = ['Network/virtualNetworks/NodePool', 'Network/virtualNetworks/NodePool/subnets/default'];
    for (const path of [...parts, ...networks]) {
      const { status, body } = await arm('GET', `${GROUP}/Microsoft.${path}`);
      expect([path, status, body['name']]).toEqual([path, 200, path.split('/').at(-1)]);
    }
    const { body } = await arm('GET', GROUP.replace('/providers', ''));
    expect(body).toMatchObject({ location: 'centralus' });
  });

  it.each(PATHS)('%s that do not exist return 404', async (path) => {
    expect(codeOf(await arm('GET', `${GROUP}/${path}/none`))).toBe('404 ResourceNotFound');
  });

  it('have an address after the configured time', async () => {
    cloud.configure({ addressMs: 60_000 });
    await arm('PUT', VM, vm(network([address()])));
    const path = `${GROUP}/Microsoft.Network/publicIPAddresses/vm-ip`;
    expect((await arm('GET', path)).body['properties']).not.toHaveProperty('ipAddress');
    await clock.advance(60_000);
    expect((await arm('GET', path)).body['properties']).toHaveProperty('ipAddress');
  });
});

describe('a call', () => {
  it('requires a known subscription and published parameters', async () => {
    expect(codeOf(await arm('GET', VM.replace(ACCOUNT.subscriptionId, 'other')))).toBe('404 SubscriptionNotFound');
    expect(codeOf(await send('GET', `${VM}?api-version=2025-04-01&$expand=everything`))).toBe('400 InvalidParameter');
    expect(codeOf(await send('GET', `${VM}?api-version=tomorrow`))).toBe('400 InvalidParameter');
  });

  it('requires a valid token and a version', async () => {
    expect(codeOf(await send('GET', VM))).toBe('400 MissingApiVersionParameter');
    cloud.revokeTokens();
    expect(codeOf(await arm('GET', VM))).toBe('401 InvalidAuthenticationToken');
  });

  it('is refused above the rate limit until the minute ends', async () => {
    cloud.configure({ callsPerMinute: 1 });
    await clock.advance(60_000);
    await arm('GET', VM);
    const refused = await arm('GET', VM);
    expect(codeOf(refused)).toBe('429 TooManyRequests');
    expect(refused.headers['retry-after']).toBe('60');
    await clock.advance(60_000);
    expect(codeOf(await arm('GET', VM))).toBe('404 ResourceNotFound');
  });

  it('fails as often as the fault plan demands', async () => {
    cloud.faults.add({
      on: 'virtualMachines.get',
      fault: { kind: 'status', status: 503, code: 'ServiceUnavailable', retryAfter: 7 },
    });
    const first = await arm('GET', VM);
    expect([codeOf(first), first.headers['retry-after']]).toEqual(['503 ServiceUnavailable', '7']);
    expect(codeOf(await arm('GET', VM))).toBe('404 ResourceNotFound');
    cloud.faults.add({ on: 'virtualMachines.put', fault: { kind: 'cut', when: 'after' } });
    await expect(arm('PUT', VM, vm())).rejects.toThrow();
    expect(cloud.list('Microsoft.Compute/virtualMachines')).toHaveLength(1);
  });
});

describe('a list', () => {
  it('has pages, and lags if the fault plan demands it', async () => {
    for (const name of ['a', 'b', 'c']) cloud.machines.addForeign(name);
    const all = `/subscriptions/${ACCOUNT.subscriptionId}/providers/Microsoft.Compute/virtualMachines`;
    const first = await arm('GET', all);
    expect(first.body['value']).toHaveLength(2);
    const second = await send('GET', textAt(first.body, 'nextLink'));
    expect(second.body['value']).toHaveLength(1);
    expect(second.body['nextLink']).toBeUndefined();
    cloud.faults.add({ on: 'virtualMachines.list', fault: { kind: 'lag', ms: 1000 } });
    expect((await arm('GET', all)).body['value']).toEqual([]);
  });
});
