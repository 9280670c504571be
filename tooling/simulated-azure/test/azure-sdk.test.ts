/** Microsoft's Python libraries, from Debian, use the simulated cloud for the operations of a driver. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ACCOUNT, SAMPLE_SUBNET_ID, startSimulatedAzure, type SimulatedAzure } from '../src/index.js';

const PYTHON = '/usr/bin/python3';
const IMPORTS = 'import azure.mgmt.compute, azure.mgmt.network, azure.mgmt.resource';
const hasClient = spawnSync(PYTHON, ['-c', IMPORTS]).status === 0;
const withClient = hasClient ? describe : describe.skip;

withClient('python3-azure', () => {
  let cloud: SimulatedAzure;
  let facts: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    // The client is another process, so the operations take real time.
    cloud = await startSimulatedAzure({ settings: { bootMs: 20, deleteMs: 10, workMs: 10, retryAfterSeconds: 0 } });
    cloud.disks.addImage('nodepool', 'ready', 'centralus', {}, 'V2');
    const { caFile } = JSON.parse(readFileSync(cloud.authFile, 'utf8')) as { readonly caFile: string };
    const { subscriptionId: subscription } = ACCOUNT;
    const setup = { url: cloud.url, subscription, subnet: SAMPLE_SUBNET_ID, token: await tokenOf(cloud, caFile) };
    const env = { ...process.env, REQUESTS_CA_BUNDLE: caFile };
    const script = join(__dirname, 'use-by-azure-sdk.py');
    const { stdout } = await promisify(execFile)(PYTHON, [script, JSON.stringify(setup)], { env });
    facts = JSON.parse(stdout) as typeof facts;
  });

  afterAll(() => cloud.close());

  it('finds the group, the network, sizes and usages', () => {
    expect(facts['places']).toEqual({
      ...{ group: 'centralus', groups: ['nodepool'], network: 'NodePool', subnet: true },
      ...{ sizes: true, cores: [10_000] },
    });
  });

  it('creates a VM with its resources, and reads each of them', () => {
    expect(facts['vm']).toEqual({
      ...{ state: 'Succeeded', size: 'Standard_B2s', private: '10.', public: '203.', address: 'Standard', disk: true },
      view: ['ProvisioningState/succeeded', 'PowerState/running'],
      ...{ expanded: true, plain: false, again: true, tags: { team: 'qa' } },
      listed: [['ci-1'], ['ci-1']],
    });
  });

  it('reads the codes of errors', () => {
    expect(facts['refused']).toEqual({
      location: [400, 'LocationNotAvailableForResourceType'],
      zone: [400, 'InvalidAvailabilityZone'],
      change: [409, 'PropertyChangeNotAllowed'],
      unknown: [404, 'ResourceNotFound'],
      interface: [400, 'NicInUse'],
    });
  });

  it('creates a disk to write to, and finds images', () => {
    expect(facts['disk']).toEqual({
      ...{ state: 'ReadyToUpload', access: true, busy: [409, 'Conflict'], revoked: null, deleted: null },
      ...{ images: ['ready'], image: 'V2' },
    });
  });

  it('deletes the VM with its resources', () => {
    expect(facts['left']).toEqual([[], [], [], []]);
  });
});

async function tokenOf(cloud: SimulatedAzure, caFile: string): Promise<string> {
  const form = new URLSearchParams({ client_id: ACCOUNT.clientId, client_secret: ACCOUNT.clientSecret });
  const answer = await new Promise<string>((resolve, reject) => {
    const url = new URL(`/${ACCOUNT.tenantId}/oauth2/v2.0/token`, cloud.url);
    const call = request(url, { method: 'POST', ca: readFileSync(caFile), agent: false }, (response) => {
      text(response).then(resolve, reject);
    });
    call.on('error', reject);
    call.end(form.toString());
  });
  return (JSON.parse(answer) as { readonly access_token: string }).access_token;
}
