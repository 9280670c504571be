/** What the simulated Azure refuses, and how it answers, as any client sees it. */

import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isJsonObject, seededRandom, stringAt, VirtualClock, type JsonObject } from '@nodepool/core';
import { ACCOUNT, SAMPLE_SUBNET_ID, startSimulatedAzure, type SimulatedAzure } from '../src/index.js';

const GROUP = `/subscriptions/${ACCOUNT.subscriptionId}/resourceGroups/nodepool/providers`;
const VM = `${GROUP}/Microsoft.Compute/virtualMachines/vm`;

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

function vm(change: JsonObject = {}): JsonObject {
  const configuration = { name: 'v4', properties: { subnet: { id: SAMPLE_SUBNET_ID } } };
  const nic = { name: 'vm-nic', properties: { deleteOption: 'Delete', ipConfigurations: [configuration] } };
  return {
    location: 'centralus',
    properties: {
      hardwareProfile: { vmSize: 'Standard_B1ls' },
      storageProfile: { osDisk: { createOption: 'FromImage' } },
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
  it('is made by an operation, and goes with what was made with it', async () => {
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

  it('does not show its secrets', async () => {
    await arm('PUT', VM, vm({ userData: 'aGlkZGVu' }));
    const shown = JSON.stringify((await arm('GET', VM)).body);
    expect(shown).not.toContain('Good-Password-1');
    expect(shown).not.toContain('aGlkZGVu');
  });

  it.each([
    ['a field that Azure does not know', { hardwareProfil: {} }, '400 InvalidRequestContent'],
    ['a value of another type', { userData: 5 }, '400 InvalidRequestContent'],
    ['a size that there is not', { hardwareProfile: { vmSize: 'Standard_X' } }, '400 InvalidParameter'],
    ['a size that the account cannot have', { hardwareProfile: { vmSize: 'Standard_M128s' } }, '409 SkuNotAvailable'],
    [
      'a weak password',
      { osProfile: { computerName: 'vm', adminUsername: 'zuul', adminPassword: 'weak' } },
      '400 InvalidParameter',
    ],
    ['no way to log in', { osProfile: { computerName: 'vm', adminUsername: 'zuul' } }, '400 InvalidParameter'],
  ])('is refused with %s', async (_what, change, expected) => {
    expect(codeOf(await arm('PUT', VM, vm(change)))).toBe(expected);
  });

  it('is refused when the quota is used up', async () => {
    cloud.setLimit('cores', 0);
    expect(codeOf(await arm('PUT', VM, vm()))).toBe('409 OperationNotAllowed');
  });

  it('keeps what it uses from being deleted', async () => {
    await arm('PUT', VM, vm());
    expect(codeOf(await arm('DELETE', `${GROUP}/Microsoft.Network/networkInterfaces/vm-nic`))).toBe('400 NicInUse');
    expect(codeOf(await arm('DELETE', `${GROUP}/Microsoft.Compute/disks/vm_OsDisk_1`))).toBe('409 OperationNotAllowed');
  });
});

describe('every call', () => {
  it('needs a token that is good, and a version', async () => {
    expect(codeOf(await send('GET', VM))).toBe('400 MissingApiVersionParameter');
    cloud.revokeTokens();
    expect(codeOf(await arm('GET', VM))).toBe('401 InvalidAuthenticationToken');
  });

  it('is refused when there are too many, until the minute is over', async () => {
    cloud.configure({ callsPerMinute: 1 });
    await clock.advance(60_000);
    await arm('GET', VM);
    const refused = await arm('GET', VM);
    expect(codeOf(refused)).toBe('429 TooManyRequests');
    expect(refused.headers['retry-after']).toBe('60');
    await clock.advance(60_000);
    expect(codeOf(await arm('GET', VM))).toBe('404 ResourceNotFound');
  });

  it('meets the faults of the plan, as often as that says', async () => {
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
  it('has pages, and lags when the plan says so', async () => {
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
