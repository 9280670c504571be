/** Cases of neutron. */

import { strict as assert } from 'node:assert';
import type { JsonObject } from '@nodepool/core';
import { listOf, textOf, type ApiAnswer, type ApiClient } from './api-client.js';
import { casesOf, hasKeys, noId, refused, type ApiCase, type TestBed } from './test-bed.js';

const networkCase = casesOf('network');

const FLOATING_KEYS = [
  'id',
  'tenant_id',
  'floating_ip_address',
  'floating_network_id',
  'router_id',
  'port_id',
  'fixed_ip_address',
  'status',
  'project_id',
  'description',
  'port_details',
  'tags',
  'created_at',
  'updated_at',
  'revision_number',
];
const PORT_KEYS = [
  'id',
  'name',
  'network_id',
  'tenant_id',
  'mac_address',
  'admin_state_up',
  'status',
  'device_id',
  'device_owner',
  'fixed_ips',
  'project_id',
  'port_security_enabled',
  'security_groups',
  'binding:vnic_type',
  'allowed_address_pairs',
  'extra_dhcp_opts',
  'description',
  'tags',
  'created_at',
  'updated_at',
  'revision_number',
];

const error = (type: string, message: string): object => ({ NeutronError: { type, message, detail: '' } });

/** Creates a floating IP, which is deleted after the case. */
async function floating(bed: TestBed, more: object = {}, client: ApiClient = bed.demo): Promise<ApiAnswer> {
  const floatingip = { floating_network_id: bed.publicNetworkId, ...more };
  const answer = await client.post('network', '/floatingips', { floatingip });
  if (answer.status === 201) {
    const id = textOf(answer.member('floatingip')['id']);
    bed.afterwards(() => client.delete('network', `/floatingips/${id}`));
  }
  return answer;
}

async function port(bed: TestBed, more: object = {}, client: ApiClient = bed.demo): Promise<ApiAnswer> {
  const answer = await client.post('network', '/ports', { port: { network_id: bed.networkId(client), ...more } });
  if (answer.status === 201) {
    const id = textOf(answer.member('port')['id']);
    bed.afterwards(() => client.delete('network', `/ports/${id}`));
  }
  return answer;
}

export const networkCases: readonly ApiCase[] = [
  networkCase('refuses an invalid token with 401', async ({ demo }) =>
    refused(await demo.get('network', '/networks', { token: 'nonsense' }), 401, {
      error: { code: 401, title: 'Unauthorized', message: 'The request you have made requires authentication.' },
    }),
  ),
  networkCase("shows the project's networks and external ones, and hides those of other projects", async (bed) => {
    const names = async (query: string): Promise<string[]> =>
      (await bed.demo.get('network', `/networks${query}`))
        .list('networks')
        .map(({ name }) => textOf(name))
        .sort();
    assert.deepEqual(await names(''), ['private', 'public']);
    assert.deepEqual(await names('?router:external=true'), ['public']);
    const id = bed.networkId(bed.limited);
    refused(
      await bed.demo.get('network', `/networks/${id}`),
      404,
      error('NetworkNotFound', `Network ${id} could not be found.`),
    );
  }),
  networkCase('returns only the requested fields, and links to a next page after a full one', async ({ demo }) => {
    const answer = await demo.get('network', '/networks?limit=1&fields=id&fields=name');
    const [network] = answer.list('networks');
    assert.deepEqual(Object.keys(network ?? {}).sort(), ['id', 'name']);
    const next = answer.list('networks_links').find((link) => link['rel'] === 'next');
    assert.equal((await demo.at(textOf(next?.['href']))).list('networks').length, 1);
  }),
  networkCase('creates a port for a server, and deletes both together', async (bed) => {
    const id = textOf((await bed.server('case-port'))['id']);
    const [made] = (await bed.demo.get('network', `/ports?device_id=${id}`)).list('ports');
    assert.ok(made !== undefined);
    hasKeys(made, PORT_KEYS);
    assert.deepEqual([made['device_owner'], made['status'], made['name']], ['compute:nova', 'ACTIVE', '']);
    await bed.removeServer(id);
    const path = `/ports/${textOf(made['id'])}`;
    assert.equal((await bed.demo.get('network', path)).status, 404);
  }),
  networkCase('creates, changes, finds and deletes ports; an unused one is DOWN', async (bed) => {
    const made = (await port(bed, { name: 'case', description: noId() })).member('port');
    const { id, status, description, device_id } = made;
    hasKeys(made, PORT_KEYS);
    assert.deepEqual([status, device_id], ['DOWN', '']);
    const query = `/ports?description=${textOf(description)}&status=DOWN`;
    assert.deepEqual(
      (await bed.demo.get('network', query)).list('ports').map((found) => found['id']),
      [id],
    );
    const path = `/ports/${textOf(id)}`;
    const changed = await bed.demo.put('network', path, { port: { name: 'other' } });
    assert.equal(changed.member('port')['name'], 'other');
    assert.equal((await bed.limited.delete('network', path)).status, 404);
    assert.equal((await bed.demo.delete('network', path)).status, 204);
    const missing = error('PortNotFound', `Port ${textOf(id)} could not be found.`);
    refused(await bed.demo.delete('network', path), 404, missing);
  }),
  networkCase('refuses to delete a port of a router with 409', async ({ demo }) => {
    const [found] = (await demo.get('network', '/ports?device_owner=network:router_interface')).list('ports');
    const id = textOf(found?.['id']);
    const message = `Port ${id} cannot be deleted directly via the port API: has device owner network:router_interface.`;
    refused(await demo.delete('network', `/ports/${id}`), 409, error('ServicePortInUse', message));
  }),
  networkCase(
    'creates a floating IP, which is DOWN until it has a port, and finds it by description and tags',
    async (bed) => {
      const mark = noId();
      const made = (await floating(bed, { description: mark })).member('floatingip');
      hasKeys(made, FLOATING_KEYS);
      assert.deepEqual([made['status'], made['port_id'], made['description']], ['DOWN', null, mark]);
      const path = `/floatingips/${textOf(made['id'])}`;
      assert.deepEqual((await bed.demo.put('network', `${path}/tags`, { tags: [mark] })).json(), { tags: [mark] });
      for (const query of [`description=${mark}`, `tags=${mark}`]) {
        const found = (await bed.demo.get('network', `/floatingips?${query}`)).list('floatingips');
        assert.deepEqual(
          found.map(({ id }) => id),
          [made['id']],
          query,
        );
      }
    },
  ),
  networkCase(
    'attaches a floating IP to a port, shows it among the addresses of the server, and detaches it with the server',
    async (bed) => {
      const { demo } = bed;
      const serverId = textOf((await bed.server('case-floating'))['id']);
      const [found] = (await demo.get('network', `/ports?device_id=${serverId}`)).list('ports');
      const portId = textOf(found?.['id']);
      const made = (await floating(bed, { port_id: portId })).member('floatingip');
      assert.deepEqual([made['status'], made['port_id']], ['ACTIVE', portId]);
      const details = made['port_details'] as JsonObject;
      assert.deepEqual([details['device_id'], details['device_owner']], [serverId, 'compute:nova']);
      const second = await floating(bed, { port_id: portId });
      assert.equal(second.status, 409);
      assert.equal(second.member('NeutronError')['type'], 'FloatingIPPortAlreadyAssociated');
      const shown = await demo.until('compute', `/servers/${serverId}`, ({ text }) => text.includes('"floating"'));
      const addresses = listOf((shown.member('server')['addresses'] as JsonObject)['private']);
      const pairs = addresses.map((address) => [address['OS-EXT-IPS:type'], address['addr']]);
      assert.deepEqual(pairs, [
        ['fixed', made['fixed_ip_address']],
        ['floating', made['floating_ip_address']],
      ]);
      await bed.removeServer(serverId);
      const freed = (await demo.get('network', `/floatingips/${textOf(made['id'])}`)).member('floatingip');
      assert.deepEqual([freed['status'], freed['port_id']], ['DOWN', null]);
    },
  ),
  networkCase('attaches and detaches an existing floating IP', async (bed) => {
    const portId = textOf((await port(bed)).member('port')['id']);
    const path = `/floatingips/${textOf((await floating(bed)).member('floatingip')['id'])}`;
    const change = (port_id: string | null): Promise<ApiAnswer> =>
      bed.demo.put('network', path, { floatingip: { port_id } });
    assert.equal((await change(portId)).member('floatingip')['status'], 'ACTIVE');
    assert.equal((await change(null)).member('floatingip')['port_id'], null);
    const absent = noId();
    refused(await change(absent), 404, error('PortNotFound', `Port ${absent} could not be found.`));
  }),
  networkCase('deletes a floating IP with 204, and then answers 404', async (bed) => {
    const id = textOf((await floating(bed)).member('floatingip')['id']);
    assert.equal((await bed.demo.delete('network', `/floatingips/${id}`)).status, 204);
    const missing = error('FloatingIPNotFound', `Floating IP ${id} could not be found`);
    refused(await bed.demo.delete('network', `/floatingips/${id}`), 404, missing);
  }),
  networkCase(
    'refuses a floating IP of an internal network with 400, and of a nonexistent one with 404',
    async (bed) => {
      const inner = bed.networkId();
      const message = `Bad floatingip request: Network ${inner} is not a valid external network.`;
      refused(await floating(bed, { floating_network_id: inner }), 400, error('BadRequest', message));
      const absent = noId();
      const missing = error('NetworkNotFound', `Network ${absent} could not be found.`);
      refused(await floating(bed, { floating_network_id: absent }), 404, missing);
    },
  ),
  networkCase(
    'refuses floating IPs and ports above the quota with 409, and nova then refuses a server with 403',
    async (bed) => {
      const { limited } = bed;
      let last = await floating(bed, {}, limited);
      while (last.status === 201) last = await floating(bed, {}, limited);
      refused(last, 409, error('OverQuota', "Quota exceeded for resources: ['floatingip']."));
      let lastPort = await port(bed, {}, limited);
      while (lastPort.status === 201) lastPort = await port(bed, {}, limited);
      refused(lastPort, 409, error('OverQuota', "Quota exceeded for resources: ['port']."));
      refused(await bed.createServer('case-ports', { client: limited }), 403, {
        forbidden: { code: 403, message: 'Maximum number of ports exceeded' },
      });
    },
  ),
  networkCase("returns the project's quota", async ({ limited }) => {
    const { floatingip, port: ports } = (await limited.get('network', `/quotas/${limited.projectId}`)).member('quota');
    assert.deepEqual({ floatingip, ports }, { floatingip: 2, ports: 10 });
  }),
  networkCase('has no availability zones', async ({ demo }) =>
    assert.deepEqual((await demo.get('network', '/availability_zones')).json(), { availability_zones: [] }),
  ),
  networkCase('refuses an unknown path, and a sort key without a direction', async ({ demo }) => {
    const nowhere = error('HTTPNotFound', 'The resource could not be found.');
    refused(await demo.get('network', '/nowhere'), 404, nowhere);
    const unsorted = error('HTTPBadRequest', 'The number of sort_keys and sort_dirs must be same');
    refused(await demo.get('network', '/ports?sort_key=id'), 400, unsorted);
  }),
];
