/** Cleanup: leaked resources are listed, and untagged ones are deleted only if they certainly belong to no server. */

import { afterEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { callOn } from '@nodepool/driver-kit';
import { clientOf, openCloud, section, type OpenCloud } from './cloud.js';
import { closeAndCheck, TestProvider } from './provider.js';

let open: OpenCloud;
let test: TestProvider;

async function started(change: JsonObject = {}, label: JsonObject = {}, pool: JsonObject = {}): Promise<void> {
  open = await openCloud();
  test = await TestProvider.started(open, section(change, label, pool));
}

async function pass(ms: number): Promise<void> {
  await test.end(new Promise<void>((resolve) => void open.time.clock.schedule(ms, resolve)));
}

afterEach(() => closeAndCheck(open, test));

describe('a clean-up round', () => {
  it('lists servers and floating IPs with their tags, and deletes leaked ones', async () => {
    await started({}, {}, { 'auto-floating-ip': true });
    await test.launch();
    const offered = await test.cleanUpRound(() => true);
    expect(offered.map(({ kind, tags }) => [kind, tags['nodepool_node_id'], tags['nodepool_launch_attempt']])).toEqual([
      ['instance', '0000000001', 'attempt-of-0000000001'],
      ['floating-ip', '0000000001', 'attempt-of-0000000001'],
    ]);
    await pass(5000);
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 0, floatingIps: 0 });
  });

  it('finds floating IPs with all tags if the name of the provider is not ASCII', async () => {
    const name = '東京データセンター北館の継続的インテグレーション = 100% ☂ 😀';
    await started({ name }, {}, { 'auto-floating-ip': true });
    await test.launch();
    const offered = await test.cleanUpRound();
    const { nodepool_pool_name: _pool, ...tags } = test.tagsOf('0000000001');
    expect(offered.find(({ kind }) => kind === 'floating-ip')?.tags).toMatchObject(tags);
    const [address] = open.cloud.inspect.floatingIps();
    expect(address?.description.length).toBeLessThanOrEqual(255);
  });

  it('finds floating IPs by the tags for which their description has room', async () => {
    await started({ name: 'p'.repeat(110) }, {}, { 'auto-floating-ip': true });
    await test.launch();
    const [address] = open.cloud.inspect.floatingIps();
    expect(address?.description.length).toBeLessThanOrEqual(255);
    const offered = await test.cleanUpRound();
    const { nodepool_pool_name: _pool, ...tags } = test.tagsOf('0000000001');
    expect(offered.find(({ kind }) => kind === 'floating-ip')?.tags).toEqual(tags);
  });

  it('reports a leaked volume of this provider, and no volume without its tags', async () => {
    await started();
    await leakedVolume();
    await send('volume', '/volumes', { volume: { name: 'of others', size: 1 } });
    await pass(5000);
    const offered = await test.cleanUpRound(() => true);
    expect(offered).toMatchObject([{ kind: 'volume', name: 'left', tags: test.tagsOf('0000000009') }]);
    await pass(5000);
    expect(open.cloud.inspect.volumes().map(({ name }) => name)).toEqual(['of others']);
  });

  it('fails for the resources whose deletion a proxy answers with a page of its own, and deletes them later', async () => {
    await started({}, {}, { 'auto-floating-ip': true });
    await test.launch();
    await leakedVolume();
    await pass(5000);
    const isDeletion = ({ method }: { readonly method: string }): boolean => method === 'DELETE';
    open.cloud.faults.add({ on: isDeletion, times: 3, fault: { kind: 'proxy', status: 200 } });
    await expect(test.cleanUpRound(() => true)).rejects.toMatchObject({
      code: 'transient',
      message: expect.stringContaining('3 of 3 leaked resources'),
    });
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 1, floatingIps: 1, volumes: 1 });
    await test.cleanUpRound(() => true);
    await pass(5000);
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 0, floatingIps: 0, volumes: 0 });
  });

  it('keeps foreign floating IPs unless clean-floating-ips is set', async () => {
    await started();
    await looseFloatingIp();
    for (let round = 0; round < 5; round += 1) {
      await test.cleanUpRound(() => true);
      await pass(60_000);
    }
    expect(open.cloud.inspect.floatingIps()).toHaveLength(1);
  });

  it('keeps unattached floating IPs of nodes with records, although clean-floating-ips is set', async () => {
    await started({ 'clean-floating-ips': true });
    await looseFloatingIp('nodepool_node_id=0000000009 nodepool_provider_name=test');
    for (let round = 0; round < 3; round += 1) {
      await test.cleanUpRound();
      await pass(61_000);
    }
    expect(open.cloud.inspect.floatingIps()).toHaveLength(1);
  });

  it('deletes floating IPs that have been unattached for a minute if clean-floating-ips is set', async () => {
    await started({ 'clean-floating-ips': true });
    await looseFloatingIp();
    await test.cleanUpRound();
    expect(open.cloud.inspect.floatingIps()).toHaveLength(1);
    await pass(61_000);
    await test.cleanUpRound();
    expect(open.cloud.inspect.floatingIps()).toEqual([]);
  });
});

describe('ports with status DOWN', () => {
  it('are deleted after port-cleanup-interval if their server does not exist', async () => {
    await started({ 'port-cleanup-interval': 300 });
    await downPort('11111111-2222-3333-4444-555555555555');
    for (let minute = 0; minute < 5; minute += 1) {
      await test.cleanUpRound();
      expect(open.cloud.inspect.ports().filter(({ name }) => name === 'forgotten')).toHaveLength(1);
      await pass(60_000);
    }
    await test.cleanUpRound();
    expect(open.cloud.inspect.ports().filter(({ name }) => name === 'forgotten')).toEqual([]);
  });

  it('are not deleted while their server exists', async () => {
    await started({ 'port-cleanup-interval': 60 });
    await test.launch();
    await downPort(open.cloud.inspect.servers()[0]?.id ?? '');
    for (let minute = 0; minute < 4; minute += 1) {
      await test.cleanUpRound();
      await pass(60_000);
    }
    expect(open.cloud.inspect.ports().filter(({ name }) => name === 'forgotten')).toHaveLength(1);
  });

  it('are not deleted while only a list lacks their server', async () => {
    await started({ 'port-cleanup-interval': 60 });
    await test.launch();
    await downPort(open.cloud.inspect.servers()[0]?.id ?? '');
    open.cloud.faults.add({ on: 'compute.servers.list-detail', times: Infinity, fault: { kind: 'truncate', to: 0 } });
    for (let minute = 0; minute < 4; minute += 1) {
      await test.cleanUpRound();
      await pass(60_000);
    }
    expect(open.cloud.inspect.ports().filter(({ name }) => name === 'forgotten')).toHaveLength(1);
  });

  it('are not deleted if compute has not created them', async () => {
    await started({ 'port-cleanup-interval': 60 });
    await downPort('11111111-2222-3333-4444-555555555555', 'Octavia');
    await downPort('', 'compute:nova');
    for (let minute = 0; minute < 4; minute += 1) {
      await test.cleanUpRound();
      await pass(60_000);
    }
    expect(open.cloud.inspect.ports().filter(({ name }) => name === 'forgotten')).toHaveLength(2);
  });

  it('are not deleted if port-cleanup-interval is 0', async () => {
    await started({ 'port-cleanup-interval': 0 });
    await downPort('11111111-2222-3333-4444-555555555555');
    for (let hour = 0; hour < 3; hour += 1) {
      await test.cleanUpRound();
      await pass(3_600_000);
    }
    expect(test.count('ports')).toBe(0);
  });
});

/** Creates a volume with the metadata that a launch gives to the volume of a node. */
async function leakedVolume(): Promise<void> {
  await send('volume', '/volumes', { volume: { name: 'left', size: 1, metadata: { ...test.tagsOf('0000000009') } } });
  const id = open.cloud.inspect.volumes().find(({ name }) => name === 'left')?.id ?? '';
  await send('volume', `/volumes/${id}/metadata`, { metadata: { nodepool_volume_id: id } });
}

/** Creates an unattached floating IP outside Nodepool. */
async function looseFloatingIp(description = ''): Promise<void> {
  const { id } = await network('public');
  await send('network', '/floatingips', { floatingip: { floating_network_id: id, description } });
}

async function downPort(deviceId: string, deviceOwner = 'compute:nova'): Promise<void> {
  const { id } = await network('private');
  const port = { network_id: id, name: 'forgotten', device_id: deviceId, device_owner: deviceOwner };
  await send('network', '/ports', { port });
}

async function network(name: string): Promise<{ readonly id: string }> {
  const client = clientOf(open);
  const networks = await client.network.listNetworks(callOn(open.time.clock));
  await client.close();
  return { id: networks.find((each) => each.name === name)?.id ?? '' };
}

/** Creates a resource as another user of the cloud does. */
async function send(service: 'network' | 'volume', path: string, body: JsonObject): Promise<void> {
  const auth = {
    identity: {
      methods: ['password'],
      password: { user: { name: 'demo', domain: { name: 'Default' }, password: 'ostack' } },
    },
    scope: { project: { name: 'demo', domain: { name: 'Default' } } },
  };
  const json = { 'content-type': 'application/json' };
  const login = await fetch(`${open.cloud.authUrl}/auth/tokens`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ auth }),
  });
  const { token } = (await login.json()) as { readonly token: { readonly project: { readonly id: string } } };
  const version = service === 'network' ? 'v2.0' : `v3/${token.project.id}`;
  const answer = await fetch(`${open.cloud.url}/${service}/${version}${path}`, {
    method: 'POST',
    headers: { ...json, 'x-auth-token': login.headers.get('x-subject-token') ?? '' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}
