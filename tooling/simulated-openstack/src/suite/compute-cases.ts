/** Cases of nova without servers: versions, flavors, limits, and refused creations. */

import { strict as assert } from 'node:assert';
import type { JsonObject } from '@nodepool/core';
import { textOf } from './api-client.js';
import {
  casesOf,
  hasKeys,
  noId,
  refused,
  refusedInHtml,
  type ApiCase,
  type TestBed,
  type ServerOptions,
} from './test-bed.js';

const computeCase = casesOf('compute');

const LIMITS_OF_ANY_VERSION = [
  'maxServerGroupMembers',
  'maxServerGroups',
  'maxServerMeta',
  'maxTotalCores',
  'maxTotalInstances',
  'maxTotalKeypairs',
  'maxTotalRAMSize',
  'totalCoresUsed',
  'totalInstancesUsed',
  'totalRAMUsed',
  'totalServerGroupsUsed',
];

const version = (text: string): { readonly headers: Readonly<Record<string, string>> } => ({
  headers: { 'OpenStack-API-Version': `compute ${text}` },
});

/** Returns a case for a creation that is refused with 400 and this message. */
function refusesCreation(
  what: string,
  options: (bed: TestBed) => ServerOptions,
  message: (body: ServerOptions) => string,
): ApiCase {
  return computeCase(`refuses a server with ${what} with 400`, async (bed) => {
    const asked = options(bed);
    refused(await bed.createServer('case-refused', asked), 400, {
      badRequest: { code: 400, message: message(asked) },
    });
  });
}

const more = (attributes: Readonly<Record<string, unknown>>) => (): ServerOptions => ({ more: attributes });
const absent = noId();

export const computeCases: readonly ApiCase[] = [
  computeCase('returns its microversions without a token', async ({ demo }) => {
    const answer = await demo.get('compute', '/', { token: null });
    assert.equal(answer.status, 200, answer.text);
    const { id, version: newest, min_version } = answer.member('version');
    assert.deepEqual([id, min_version], ['v2.1', '2.1']);
    assert.equal(newest, '2.93');
  }),
  computeCase('names the microversion and the headers that select it in every answer', async ({ demo }) => {
    for (const path of ['/flavors', `/flavors/${absent}`]) {
      const { headers } = await demo.get('compute', path, version('2.60'));
      assert.equal(headers.get('openstack-api-version'), 'compute 2.60');
      assert.equal(headers.get('vary'), 'OpenStack-API-Version, X-OpenStack-Nova-API-Version');
    }
  }),
  computeCase('refuses an unknown microversion with 406', async ({ demo }) =>
    refused(await demo.get('compute', '/servers', version('2.999')), 406, {
      computeFault: {
        code: 406,
        message: 'Version 2.999 is not supported by the API. Minimum is 2.1 and maximum is 2.93.',
      },
    }),
  ),
  computeCase('refuses an invalid and a missing token with 401', async ({ demo }) => {
    for (const token of ['nonsense', null]) {
      refused(await demo.get('compute', '/servers', { token }), 401, {
        error: { code: 401, title: 'Unauthorized', message: 'The request you have made requires authentication.' },
      });
    }
  }),
  computeCase('answers an unknown path with HTML', async ({ demo }) =>
    refusedInHtml(await demo.get('compute', '/nowhere'), 404, 'The resource could not be found.'),
  ),
  computeCase('lists each flavor once, in pages with a link to the next one', async ({ demo }) => {
    const names: string[] = [];
    let url = `${demo.endpoint('compute')}/flavors/detail?limit=2`;
    while (url !== '') {
      const page = await demo.at(url);
      names.push(...page.list('flavors').map(({ name }) => textOf(name)));
      url = textOf(page.list('flavors_links')[0]?.['href']);
    }
    assert.deepEqual(names.sort(), ['m1.large', 'm1.medium', 'm1.nohost', 'm1.small', 'm1.tiny']);
  }),
  computeCase('shows the resources of a flavor', async (bed) => {
    const path = `/flavors/${bed.flavorId('m1.small')}`;
    const flavor = (await bed.demo.get('compute', path)).member('flavor');
    const { name, ram, disk, vcpus, swap } = flavor;
    assert.deepEqual({ name, ram, disk, vcpus, swap }, { name: 'm1.small', ram: 2048, disk: 20, vcpus: 1, swap: '' });
    const later = (await bed.demo.get('compute', path, version('2.93'))).member('flavor');
    assert.deepEqual([later['swap'], later['extra_specs'], later['description']], [0, {}, null]);
  }),
  computeCase('shows the extra specs of a flavor', async (bed) => {
    const path = `/flavors/${bed.flavorId('m1.small')}/os-extra_specs`;
    assert.deepEqual((await bed.demo.get('compute', path)).json(), { extra_specs: {} });
  }),
  computeCase('answers 404 for a nonexistent flavor', async ({ demo }) => {
    for (const path of [`/flavors/${absent}`, `/flavors/${absent}/os-extra_specs`]) {
      refused(await demo.get('compute', path), 404, {
        itemNotFound: { code: 404, message: `Flavor ${absent} could not be found.` },
      });
    }
  }),
  computeCase("returns the project's limits and their use", async ({ limited }) => {
    const absolute = (await limited.get('compute', '/limits', version('2.93'))).member('limits')[
      'absolute'
    ] as JsonObject;
    hasKeys(absolute, LIMITS_OF_ANY_VERSION);
    const { maxTotalInstances, maxTotalCores, maxTotalRAMSize, totalInstancesUsed } = absolute;
    assert.deepEqual([maxTotalInstances, maxTotalCores, maxTotalRAMSize, totalInstancesUsed], [3, 3, 4096, 0]);
  }),
  computeCase('shows the name of a security group that was requested by its id', async (bed) => {
    const [group] = (await bed.demo.get('network', '/security-groups?name=default')).list('security_groups');
    const asked = [{ name: textOf(group?.['id']) }];
    const created = await bed.createServer('case-group', { more: { security_groups: asked } });
    const { id, security_groups } = created.member('server');
    assert.deepEqual(security_groups, asked);
    const path = `/servers/${textOf(id)}`;
    await bed.demo.until('compute', path, (shown) => shown.member('server')['status'] === 'ACTIVE');
    const server = (await bed.demo.get('compute', path)).member('server');
    assert.deepEqual(server['security_groups'], [{ name: 'default' }]);
  }),
  computeCase('has one availability zone', async ({ demo }) => {
    const zones = (await demo.get('compute', '/os-availability-zone')).list('availabilityZoneInfo');
    assert.deepEqual(zones, [{ zoneName: 'nova', zoneState: { available: true }, hosts: null }]);
    const message = "Policy doesn't allow os_compute_api:os-availability-zone:detail to be performed.";
    refused(await demo.get('compute', '/os-availability-zone/detail'), 403, { forbidden: { code: 403, message } });
  }),
  computeCase('stores key pairs, and refuses a duplicate name with 409 and an invalid key with 400', async (bed) => {
    const { demo } = bed;
    const name = `case-${noId()}`;
    bed.afterwards(() => demo.delete('compute', `/os-keypairs/${name}`));
    assert.equal((await demo.post('compute', '/os-keypairs', { keypair: { name } })).status, 200);
    refused(await demo.post('compute', '/os-keypairs', { keypair: { name } }), 409, {
      conflictingRequest: { code: 409, message: `Key pair '${name}' already exists.` },
    });
    const bad = { keypair: { name: 'bad', public_key: 'ssh-rsa nonsense' } };
    refused(await demo.post('compute', '/os-keypairs', bad), 400, {
      badRequest: { code: 400, message: 'Keypair data is invalid: failed to generate fingerprint' },
    });
    assert.equal((await demo.delete('compute', `/os-keypairs/${name}`)).status, 202);
  }),
  refusesCreation('an image that is not there', more({ imageRef: absent }), () => 'Can not find requested image'),
  refusesCreation('no image', more({ imageRef: undefined }), () => 'Missing imageRef attribute'),
  refusesCreation('a nonexistent flavor', more({ flavorRef: absent }), () => `Flavor ${absent} could not be found.`),
  refusesCreation(
    'a nonexistent network',
    more({ networks: [{ uuid: absent }] }),
    () => `Network ${absent} could not be found.`,
  ),
  computeCase("refuses a server in another project's network with 400, like a nonexistent one", async (bed) => {
    const uuid = bed.networkId(bed.limited);
    refused(await bed.createServer('case-refused', { more: { networks: [{ uuid }] } }), 400, {
      badRequest: { code: 400, message: `Network ${uuid} could not be found.` },
    });
  }),
  refusesCreation('a key that is not there', more({ key_name: 'nokey' }), () => 'Invalid key_name provided.'),
  refusesCreation(
    'a nonexistent security group',
    more({ security_groups: [{ name: 'nosg' }] }),
    () => "Unable to find security_group with name or id 'nosg'",
  ),
  refusesCreation(
    'a nonexistent zone',
    more({ availability_zone: 'nozone' }),
    () => 'The requested availability zone is not available',
  ),
  refusesCreation(
    'metadata that are not texts',
    () => ({ metadata: { a: 1 } }),
    () => "Invalid input for field/attribute a. Value: 1. 1 is not of type 'string'",
  ),
  refusesCreation(
    'metadata that are too long',
    () => ({ metadata: { a: 'b'.repeat(256) } }),
    () => `Invalid input for field/attribute a. Value: ${'b'.repeat(256)}. '${'b'.repeat(256)}' is too long`,
  ),
  computeCase(
    'refuses a server with an unknown attribute, and since 2.37 one without networks, with 400',
    async (bed) => {
      const unknown = await bed.createServer('case-refused', { more: { bogus: 1 } });
      assert.equal(unknown.status, 400);
      assert.match(textOf(unknown.member('badRequest')['message']), /\('bogus' was unexpected\)$/);
      const without = await bed.createServer('case-refused', { more: { networks: undefined }, microversion: '2.37' });
      assert.equal(without.status, 400);
      assert.match(textOf(without.member('badRequest')['message']), /'networks' is a required property$/);
    },
  ),
  computeCase('refuses a body that is not JSON with 400', async ({ demo }) => {
    const headers = { 'Content-Type': 'application/json' };
    refused(await demo.call('compute', 'POST', '/servers', { data: '{', headers }), 400, {
      badRequest: { code: 400, message: 'Malformed request body' },
    });
  }),
  computeCase('refuses a server above the quota with 403, and names the exceeded limits', async (bed) => {
    const large = await bed.createServer('case-quota', { client: bed.limited, flavor: 'm1.large' });
    refused(large, 403, {
      forbidden: {
        code: 403,
        message: 'Quota exceeded for cores, ram: Requested 4, 8192, but already used 0, 0 of 3, 4096 cores, ram',
      },
    });
    const many = { client: bed.limited, more: { min_count: 4, max_count: 4 } };
    refused(await bed.createServer('case-quota', many), 403, {
      forbidden: {
        code: 403,
        message: 'Quota exceeded for cores, instances: Requested 4, 4, but already used 0, 0 of 3, 3 cores, instances',
      },
    });
  }),
];
