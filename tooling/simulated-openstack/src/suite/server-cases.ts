/** Cases of nova with servers: boot, errors, addresses, listings, deletion. */

import { strict as assert } from 'node:assert';
import type { JsonObject } from '@nodepool/core';
import { listOf, textOf } from './api-client.js';
import { casesOf, hasKeys, noId, refused, type ApiCase, type TestBed } from './test-bed.js';

const computeCase = casesOf('compute');

const SERVER_KEYS = [
  'id',
  'name',
  'status',
  'tenant_id',
  'user_id',
  'metadata',
  'hostId',
  'image',
  'flavor',
  'created',
  'updated',
  'addresses',
  'accessIPv4',
  'accessIPv6',
  'links',
  'OS-DCF:diskConfig',
  'OS-EXT-AZ:availability_zone',
  'config_drive',
  'key_name',
  'OS-SRV-USG:launched_at',
  'OS-SRV-USG:terminated_at',
  'OS-EXT-STS:task_state',
  'OS-EXT-STS:vm_state',
  'OS-EXT-STS:power_state',
  'os-extended-volumes:volumes_attached',
];

const unknown = (id: string): object => ({
  itemNotFound: { code: 404, message: `Instance ${id} could not be found.` },
});

/** Returns a case for a server that enters ERROR with this fault, without a host, addresses or ports. */
function endsInError(
  what: string,
  options: Parameters<TestBed['server']>[1],
  message: (id: string) => string,
): ApiCase {
  return computeCase(`changes ${what} to ERROR, with the reason as its fault`, async (bed) => {
    const server = await bed.server('case-error', options);
    const id = textOf(server['id']);
    assert.equal(server['status'], 'ERROR');
    const fault = server['fault'] as JsonObject;
    assert.deepEqual({ code: fault['code'], message: fault['message'] }, { code: 500, message: message(id) });
    hasKeys(server, [...SERVER_KEYS, 'fault']);
    assert.deepEqual([server['hostId'], server['addresses']], ['', {}]);
    assert.deepEqual((await bed.demo.get('network', `/ports?device_id=${id}`)).list('ports'), []);
  });
}

export const serverCases: readonly ApiCase[] = [
  computeCase(
    'accepts a server with 202 and its id, and builds it until it is ACTIVE and has an address',
    async (bed) => {
      const { demo } = bed;
      const created = await bed.createServer('case-life', {
        metadata: { owner: 'case' },
        more: { config_drive: true },
      });
      assert.equal(created.status, 202, created.text);
      const brief = created.member('server');
      hasKeys(brief, ['id', 'links', 'OS-DCF:diskConfig', 'security_groups', 'adminPass']);
      const id = textOf(brief['id']);
      assert.equal(created.headers.get('location'), `${demo.endpoint('compute')}/servers/${id}`);
      const active = await demo.until(
        'compute',
        `/servers/${id}`,
        (shown) => shown.member('server')['status'] === 'ACTIVE',
      );
      const server = active.member('server');
      hasKeys(server, [...SERVER_KEYS, 'progress', 'security_groups']);
      const { metadata, config_drive, tenant_id } = server;
      assert.deepEqual(
        { metadata, config_drive, tenant_id },
        { metadata: { owner: 'case' }, config_drive: 'True', tenant_id: demo.projectId },
      );
      const states = ['task_state', 'vm_state', 'power_state'].map((state) => server[`OS-EXT-STS:${state}`]);
      assert.deepEqual(states, [null, 'active', 1]);
      assert.equal(server['OS-EXT-AZ:availability_zone'], 'nova');
      const [address] = listOf((server['addresses'] as JsonObject)['private']);
      assert.ok(address !== undefined);
      hasKeys(address, ['version', 'addr', 'OS-EXT-IPS:type', 'OS-EXT-IPS-MAC:mac_addr']);
      assert.deepEqual([address['version'], address['OS-EXT-IPS:type']], [4, 'fixed']);
    },
  ),
  computeCase('lists a server immediately after its creation, with its metadata and without addresses', async (bed) => {
    const created = await bed.createServer('case-listed', { metadata: { ostack_spawn_delay: '2', mine: 'yes' } });
    const id = textOf(created.member('server')['id']);
    const listed = (await bed.demo.get('compute', '/servers/detail')).list('servers');
    const server = listed.find((candidate) => candidate['id'] === id);
    assert.ok(server !== undefined);
    assert.deepEqual([server['status'], server['addresses']], ['BUILD', {}]);
    assert.equal((server['metadata'] as JsonObject)['mine'], 'yes');
  }),
  computeCase('shows the resources of the flavor since 2.47, and a link to it before', async (bed) => {
    const id = textOf((await bed.server('case-flavor'))['id']);
    const old = (await bed.demo.get('compute', `/servers/${id}`)).member('server')['flavor'] as JsonObject;
    assert.equal(old['id'], bed.flavorId('m1.tiny'));
    const headers = { 'OpenStack-API-Version': 'compute 2.47' };
    const shown = await bed.demo.get('compute', `/servers/${id}`, { headers });
    const { vcpus, ram, disk, original_name } = shown.member('server')['flavor'] as JsonObject;
    assert.deepEqual({ vcpus, ram, disk, original_name }, { vcpus: 1, ram: 512, disk: 1, original_name: 'm1.tiny' });
  }),
  endsInError('a server that no host can hold', { flavor: 'm1.nohost' }, () => 'No valid host was found. '),
  endsInError(
    'a server whose host fails',
    { metadata: { ostack_fail: 'spawn' } },
    (id) => `Build of instance ${id} aborted: fault injection: ostack_fail=spawn`,
  ),
  endsInError(
    'a server that failed on all hosts',
    { metadata: { ostack_fail: 'resched' } },
    (id) =>
      `Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance ${id}.`,
  ),
  computeCase('changes a server in the external network of another project to ERROR', async (bed) => {
    const more = { networks: [{ uuid: bed.publicNetworkId }] };
    const fault = (await bed.server('case-external', { more }))['fault'] as JsonObject;
    assert.match(textOf(fault['message']), /aborted: Failed to allocate the network\(s\), not rescheduling\.$/);
  }),
  computeCase('answers 404 for reading and deleting a nonexistent server', async ({ demo }) => {
    const id = noId();
    refused(await demo.get('compute', `/servers/${id}`), 404, unknown(id));
    refused(await demo.delete('compute', `/servers/${id}`), 404, unknown(id));
  }),
  computeCase('hides a server from another project, and refuses its deletion', async (bed) => {
    const id = textOf((await bed.server('case-hidden'))['id']);
    refused(await bed.limited.get('compute', `/servers/${id}`), 404, unknown(id));
    refused(await bed.limited.delete('compute', `/servers/${id}`), 404, unknown(id));
    assert.deepEqual((await bed.limited.get('compute', '/servers')).list('servers'), []);
  }),
  computeCase('lists each server once, newest first, in pages with a link to the next one', async (bed) => {
    const ids = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => textOf((await bed.server(`case-page-${name}`))['id'])),
    );
    for (const path of ['/servers', '/servers/detail']) {
      const seen: string[] = [];
      let url = `${bed.demo.endpoint('compute')}${path}?limit=2&name=case-page-`;
      while (url !== '') {
        const page = await bed.demo.at(url);
        assert.ok(page.list('servers').length <= 2);
        seen.push(...page.list('servers').map(({ id }) => textOf(id)));
        url = textOf(page.list('servers_links')[0]?.['href']);
      }
      assert.deepEqual([...seen].sort(), [...ids].sort());
    }
  }),
  computeCase('refuses a listing with a nonexistent marker or an invalid limit with 400', async ({ demo }) => {
    const marker = noId();
    refused(await demo.get('compute', `/servers?marker=${marker}`), 400, {
      badRequest: { code: 400, message: `marker [${marker}] not found` },
    });
    refused(await demo.get('compute', '/servers?limit=-1'), 400, {
      badRequest: {
        code: 400,
        message: "Invalid input for query parameters limit. Value: -1. '-1' does not match '^[0-9]*$'",
      },
    });
  }),
  computeCase('lists by status, and ignores unknown filters', async (bed) => {
    const id = textOf((await bed.server('case-filter', { metadata: { ostack_fail: 'spawn' } }))['id']);
    const ids = async (query: string): Promise<string[]> =>
      (await bed.demo.get('compute', `/servers?name=case-filter&${query}`))
        .list('servers')
        .map((server) => textOf(server['id']));
    assert.deepEqual(await ids('status=ERROR'), [id]);
    assert.deepEqual(await ids('status=ACTIVE'), []);
    assert.deepEqual(await ids('nonsense=1'), [id]);
  }),
  computeCase("refuses the list of all projects' servers with 403", async ({ demo }) =>
    refused(await demo.get('compute', '/servers?all_tenants=1'), 403, {
      forbidden: {
        code: 403,
        message: "Policy doesn't allow os_compute_api:servers:index:get_all_tenants to be performed.",
      },
    }),
  ),
  computeCase('deletes a server with 204, also twice, and answers 404 after its deletion', async (bed) => {
    const { demo } = bed;
    const metadata = { ostack_delete_delay: '1' };
    const id = textOf((await bed.server('case-delete', { metadata }))['id']);
    const first = await demo.delete('compute', `/servers/${id}`);
    assert.deepEqual([first.status, first.text], [204, '']);
    const deleting = (await demo.get('compute', `/servers/${id}`)).member('server');
    assert.deepEqual([deleting['status'], deleting['OS-EXT-STS:task_state']], ['ACTIVE', 'deleting']);
    assert.equal((await demo.delete('compute', `/servers/${id}`)).status, 204);
    await bed.gone('compute', `/servers/${id}`);
    refused(await demo.delete('compute', `/servers/${id}`), 404, unknown(id));
    const listed = (await demo.get('compute', '/servers')).list('servers');
    assert.ok(!listed.some((server) => server['id'] === id));
    assert.deepEqual((await demo.get('network', `/ports?device_id=${id}`)).list('ports'), []);
  }),
  computeCase('deletes a server during its build', async (bed) => {
    const created = await bed.createServer('case-early', { metadata: { ostack_spawn_delay: '3' } });
    const id = textOf(created.member('server')['id']);
    assert.equal((await bed.demo.delete('compute', `/servers/${id}`)).status, 204);
    await bed.gone('compute', `/servers/${id}`);
  }),
  computeCase(
    'changes a server to ERROR with a fault if its deletion fails, and deletes it at the second call',
    async (bed) => {
      const { demo } = bed;
      const id = textOf((await bed.server('case-stays', { metadata: { ostack_fail: 'delete' } }))['id']);
      assert.equal((await demo.delete('compute', `/servers/${id}`)).status, 204);
      const failed = await demo.until('compute', `/servers/${id}`, (shown) => {
        const server = shown.member('server');
        return server['status'] === 'ERROR' && server['OS-EXT-STS:task_state'] === null;
      });
      const { code, message } = failed.member('server')['fault'] as JsonObject;
      const expected = 'Failed to terminate instance: fault injection: ostack_fail=delete';
      assert.deepEqual({ code, message }, { code: 400, message: expected });
      assert.equal((await demo.delete('compute', `/servers/${id}`)).status, 204);
      await bed.gone('compute', `/servers/${id}`);
    },
  ),
  computeCase('lists deleted servers only in a listing with changes-since', async (bed) => {
    const since = new Date(Date.now() - 60_000).toISOString();
    const id = textOf((await bed.server('case-changed'))['id']);
    await bed.removeServer(id);
    const find = async (query: string): Promise<JsonObject | undefined> =>
      (await bed.demo.get('compute', `/servers/detail?name=case-changed${query}`))
        .list('servers')
        .find((server) => server['id'] === id);
    assert.equal(await find(''), undefined);
    assert.equal((await find(`&changes-since=${since}`))?.['status'], 'DELETED');
  }),
  computeCase(
    'refuses a server above the quota with 403, counts those in ERROR, and reports their number in the limits',
    async (bed) => {
      const client = bed.limited;
      const metadata = { ostack_fail: 'spawn' };
      const servers = [await bed.server('case-full', { client, metadata })];
      for (const name of ['b', 'c']) servers.push(await bed.server(`case-full-${name}`, { client }));
      refused(await bed.createServer('case-full-d', { client }), 403, {
        forbidden: {
          code: 403,
          message:
            'Quota exceeded for cores, instances: Requested 1, 1, but already used 3, 3 of 3, 3 cores, instances',
        },
      });
      const absolute = (await client.get('compute', '/limits')).member('limits')['absolute'] as JsonObject;
      const { totalInstancesUsed, totalCoresUsed, totalRAMUsed } = absolute;
      assert.deepEqual([totalInstancesUsed, totalCoresUsed, totalRAMUsed], [3, 3, 1536]);
    },
  ),
  computeCase(
    'returns the console of a server, and refuses an action in another state with 409 and an unknown one with 400',
    async (bed) => {
      const id = textOf((await bed.server('case-action'))['id']);
      const act = (action: object) => bed.demo.post('compute', `/servers/${id}/action`, action);
      const output = await act({ 'os-getConsoleOutput': { length: 5 } });
      assert.match(textOf(output.json()['output']), /LAST LINE$/);
      refused(await act({ 'os-start': null }), 409, {
        conflictingRequest: { code: 409, message: `Cannot 'start' instance ${id} while it is in vm_state active` },
      });
      refused(await act({ 'os-nothing': null }), 400, {
        badRequest: { code: 400, message: 'There is no such action: os-nothing' },
      });
    },
  ),
  computeCase('changes metadata of a server', async (bed) => {
    const path = `/servers/${textOf((await bed.server('case-metadata', { metadata: { a: '1' } }))['id'])}/metadata`;
    const merged = await bed.demo.post('compute', path, { metadata: { b: '2' } });
    assert.deepEqual(merged.json(), { metadata: { a: '1', b: '2' } });
    assert.equal((await bed.demo.delete('compute', `${path}/a`)).status, 204);
    refused(await bed.demo.delete('compute', `${path}/a`), 404, {
      itemNotFound: { code: 404, message: 'Metadata item was not found' },
    });
  }),
  computeCase(
    'boots from a volume that it creates from the image, and deletes the volume with the server',
    async (bed) => {
      const mapping = {
        boot_index: '0',
        source_type: 'image',
        destination_type: 'volume',
        uuid: bed.imageId,
        volume_size: 1,
      };
      const block_device_mapping_v2 = [{ ...mapping, delete_on_termination: true }];
      const server = await bed.server('case-volume', { more: { imageRef: '', block_device_mapping_v2 } });
      assert.deepEqual([server['status'], server['image']], ['ACTIVE', '']);
      const [attached] = listOf(server['os-extended-volumes:volumes_attached']);
      const path = `/volumes/${textOf(attached?.['id'])}`;
      const volume = (await bed.demo.get('volume', path)).member('volume');
      assert.deepEqual([volume['status'], volume['size'], volume['bootable']], ['in-use', 1, 'true']);
      assert.equal(listOf(volume['attachments'])[0]?.['server_id'], server['id']);
      await bed.removeServer(textOf(server['id']));
      await bed.gone('volume', path);
    },
  ),
];
