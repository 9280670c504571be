/**
 * This driver and openstacksdk read the same files as operators write them. Both must request the same token from
 * keystone, in the same region.
 */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCloud } from '../src/client/cloud.js';

const PYTHON = '/usr/bin/python3';
const AUTH =
  '{auth_url: https://id.example.org:5000, username: ci, password: s3cret, project_name: ci, user_domain_name: Default, project_domain_name: Default}';

interface Case {
  readonly files: Readonly<Record<string, string>>;
  readonly region?: string;
  readonly env?: Readonly<Record<string, string>>;
}

function clouds(section: string, more: Omit<Case, 'files'> = {}): Case {
  return { files: { 'clouds.yaml': `clouds:\n  acme:\n    ${section.trim().replaceAll('\n', '\n    ')}\n` }, ...more };
}

function password(written: string): Case {
  return clouds(`auth: ${AUTH.replace('s3cret', written)}`);
}

const CASES: Readonly<Record<string, Case>> = {
  'a plain cloud': clouds(`auth: ${AUTH}\nregion_name: RegionOne`),
  'an empty region name': clouds(`auth: ${AUTH}\nregion_name: ''`),
  'no region name': clouds(`auth: ${AUTH}`),
  'another region than the configured one': clouds(`auth: ${AUTH}\nregion_name: RegionOne`, { region: 'RegionTwo' }),
  'a list of regions': clouds(`auth: ${AUTH}\nregions: [East, West]`),
  'one of a list of regions': clouds(`auth: ${AUTH}\nregions: [East, West]`, { region: 'West' }),
  'none of a list of regions': clouds(`auth: ${AUTH}\nregions: [East, West]`, { region: 'North' }),
  'regions with values': clouds(
    `auth: ${AUTH}
regions:
  - name: East
    values: {networks: [{name: east-net, default_interface: true}], image_format: raw}
  - name: West
    values: {auth: {auth_url: https://west.example.org/v3}, interface: internal}
  - South`,
  ),
  'the second of regions with values': clouds(
    `auth: ${AUTH}\nregions: [{name: East, values: {image_format: raw}}, {name: West, values: {auth: {auth_url: 'https://west/v3'}, interface: internal}}]`,
    { region: 'West' },
  ),
  'a region name that is a list': clouds(`auth: ${AUTH}\nregion_name: [East, West]`),
  'region names in one text': clouds(`auth: ${AUTH}\nregion_name: East,West`, { region: 'West' }),
  'a region in the URL': clouds(
    `auth: ${AUTH.replace('https://id.example.org:5000', "'https://{region_name}.example.org/v3'")}\nregion_name: east`,
  ),
  'a password that looks like a float with exponent': password('86e12345'),
  'a password of octal digits': password('0123'),
  'a password of digits that are no octal number': password('0189'),
  'a password that looks like a time': password('12:34'),
  'a password with an underscore between digits': password('1_000'),
  'a quoted password': password("'0123'"),
  'merge keys': {
    files: {
      'clouds.yaml': `base: &base
  auth: &auth ${AUTH}
  image_format: raw
clouds:
  other: {<<: *base}
  acme:
    <<: *base
    region_name: East
    auth: {<<: *auth, project_name: qa}
`,
    },
  },
  'a secure file': {
    files: {
      'clouds.yaml': `clouds: {acme: {auth: ${AUTH.replace('password: s3cret, ', '')}, region_name: East}}`,
      'secure.yaml': 'clouds: {acme: {auth: {password: 5e3}}}',
    },
  },
  'a vendor profile': {
    files: {
      'clouds.yaml': `clouds: {acme: {profile: big, auth: ${AUTH.replace(/auth_url: \S+ /, '')}}}`,
      'clouds-public.yaml':
        'public-clouds: {big: {auth: {auth_url: https://big.example.org/v3}, regions: [A, B], image_format: raw}}',
    },
  },
  'a vendor profile and a separate region': {
    files: {
      'clouds.yaml': `clouds: {acme: {profile: big, region_name: B, auth: ${AUTH.replace(/auth_url: \S+ /, '')}}}`,
      'clouds-public.yaml': 'public-clouds: {big: {auth: {auth_url: https://big.example.org/v3}, regions: [A, B]}}',
    },
  },
  'dashes in keys': clouds(`auth: ${AUTH}\nregion-name: East\nimage-format: raw`),
  'an application credential': clouds(
    'auth_type: v3applicationcredential\nauth: {auth_url: https://id/v3, application_credential_id: abc, application_credential_secret: 00e1}',
  ),
  'one domain for user and project': clouds(
    'auth: {auth_url: https://id/v3, username: ci, password: x, project_name: ci, domain_name: corp}',
  ),
  'a default domain': clouds(
    'auth: {auth_url: https://id/v3, username: ci, password: x, project_id: "12", default_domain_id: corp}',
  ),
  'old names of keys': clouds(
    'auth: {auth_url: https://id/v3, username: ci, password: x, tenant_name: ci, user_domain_id: d, project_domain_id: d}',
  ),
  'flags as words': clouds(
    `auth: ${AUTH}\nverify: no\nnetworks: [{name: a, default_interface: yes, routes_externally: 'True'}, {name: b, nat_source: on, nat_destination: yes}]`,
  ),
  'a network that is external for IPv4 only': clouds(
    `auth: ${AUTH}\nnetworks: [{name: a, routes_externally: false, routes_ipv4_externally: true}]`,
  ),
  'old keys of networks': clouds(`auth: ${AUTH}\nexternal_network: public\ninternal_network: private`),
  'two networks that are the default interface': clouds(
    `auth: ${AUTH}\nnetworks: [{name: a, default_interface: true}, {name: b, default_interface: true}]`,
  ),
  'old and new keys of networks': clouds(`auth: ${AUTH}\nexternal_network: public\nnetworks: [{name: a}]`),
  'networks without a name': clouds(`auth: ${AUTH}\nnetworks: [{default_interface: true}]`),
  'an old key of the interface': clouds(`auth: ${AUTH}\nendpoint_type: internal\ncacert: /etc/ca.pem`),
  'an endpoint instead of the catalog': clouds(
    `auth: ${AUTH}\nregion_name: east\ncompute_endpoint_override: 'https://compute.{region_name}.example.org/v2.1'`,
  ),
};

const names = Object.keys(CASES);
const hasSdk = spawnSync(PYTHON, ['-c', 'import openstack']).status === 0;
const withSdk = hasSdk ? describe : describe.skip;

withSdk('clouds.yaml has the same meaning as for openstacksdk, with', () => {
  const root = mkdtempSync(join(tmpdir(), 'clouds-'));
  const expected = new Map<string, unknown>();

  beforeAll(() => {
    const input = names.map((name, index) => {
      const { files, region, env } = caseOf(name);
      const folder = join(root, String(index));
      execFileSync('mkdir', ['-p', folder]);
      for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
      return { folder, cloud: 'acme', region, env };
    });
    const script = join(__dirname, 'read-by-openstacksdk.py');
    const output = execFileSync(PYTHON, [script], { input: JSON.stringify(input), encoding: 'utf8' });
    for (const [index, facts] of (JSON.parse(output) as unknown[]).entries()) expected.set(names[index] ?? '', facts);
  });

  afterAll(() => rmSync(root, { recursive: true }));

  it.each(names)('%s', (name) => {
    const theirs = expected.get(name);
    const ours = readByUs(name, join(root, String(names.indexOf(name))));
    if (isRefusal(theirs)) expect(isRefusal(ours)).toBe(true);
    else expect(ours).toEqual(withTexts(theirs));
  });
});

function caseOf(name: string): Case {
  const found = CASES[name];
  if (found === undefined) throw new Error(name);
  return found;
}

function isRefusal(facts: unknown): boolean {
  return typeof facts === 'object' && facts !== null && 'refused' in facts;
}

/**
 * Converts numbers to strings: keystone refuses a numeric password, so the driver sends strings where the SDK sends
 * numbers.
 */
function withTexts(facts: unknown): unknown {
  return JSON.parse(JSON.stringify(facts), (_key, value: unknown) =>
    typeof value === 'number' ? String(value) : value,
  );
}

function readByUs(name: string, folder: string): unknown {
  const { region, env = {} } = caseOf(name);
  try {
    const cloud = readCloud('acme', region, { env, cwd: folder, home: folder, siteDirectories: [] });
    const networkWith = (flag: 'defaultInterface' | 'natSource' | 'natDestination'): string | null =>
      cloud.networks.find((network) => network[flag])?.name ?? null;
    const { identityUrl, body } = cloud.credentials;
    return {
      token: { url: `${identityUrl}/auth/tokens`, body },
      region: cloud.regionName ?? null,
      interface: cloud.interface,
      computeEndpoint: cloud.services.compute.endpoint ?? null,
      imageFormat: cloud.imageFormat,
      verify: cloud.tls.verify,
      cacert: cloud.tls.cacert ?? null,
      defaultInterface: networkWith('defaultInterface'),
      natSource: networkWith('natSource'),
      natDestination: networkWith('natDestination'),
      external: cloud.networks.flatMap(({ routesExternally, name: network }) =>
        routesExternally === true ? [network] : [],
      ),
    };
  } catch (error) {
    return { refused: String(error) };
  }
}
