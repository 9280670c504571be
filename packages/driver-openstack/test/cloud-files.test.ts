/** Which values of clouds.yaml and related files apply, in which order, and the messages for missing ones. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readCloud, type Cloud } from '../src/client/cloud.js';
import type { Environment } from '../src/client/cloud-files.js';

let root: string;
let cases = 0;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'clouds-'));
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

/** Returns an environment with these files, whose paths start with `cwd`, `home` or `site`. */
function machine(files: Readonly<Record<string, unknown>>, env: Record<string, string> = {}): Environment {
  cases += 1;
  const folder = join(root, String(cases));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    // JSON is valid YAML.
    writeFileSync(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content));
  }
  const given = Object.entries(env).map(([name, value]) => [name, value.replace('ROOT', folder)]);
  return {
    env: Object.fromEntries(given) as Record<string, string>,
    cwd: join(folder, 'cwd'),
    home: join(folder, 'home'),
    siteDirectories: [join(folder, 'site')],
  };
}

const auth = {
  auth_url: 'https://cloud.example.org:5000',
  username: 'ci',
  password: 'secret',
  project_name: 'ci',
  user_domain_name: 'Default',
  project_domain_name: 'Default',
};

function cloudOf(section: object, files: Readonly<Record<string, unknown>> = {}, region?: string): Cloud {
  return readCloud('acme', region, machine({ 'cwd/clouds.yaml': { clouds: { acme: section } }, ...files }));
}

function messageOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    expect(error).toMatchObject({ code: 'configuration' });
    return error instanceof Error ? error.message : '';
  }
  throw new Error('it was read');
}

describe('the cloud files', () => {
  const at = (url: string): object => ({ clouds: { acme: { auth: { ...auth, auth_url: url } } } });

  it('are the first found of OS_CLIENT_CONFIG_FILE, the working directory, the user’s folder and the site’s folder', () => {
    const files = {
      'named.yaml': at('https://named'),
      'cwd/clouds.yaml': at('https://cwd'),
      'home/.config/openstack/clouds.yaml': at('https://home'),
      'site/clouds.yml': at('https://site'),
    };
    const found: string[] = [];
    const env = { OS_CLIENT_CONFIG_FILE: 'ROOT/named.yaml' };
    found.push(readCloud('acme', undefined, machine(files, env)).credentials.identityUrl);
    for (const gone of ['named.yaml', 'cwd/clouds.yaml', 'home/.config/openstack/clouds.yaml'] as const) {
      const rest = Object.entries(files).slice(Object.keys(files).indexOf(gone) + 1);
      found.push(readCloud('acme', undefined, machine(Object.fromEntries(rest), env)).credentials.identityUrl);
    }
    expect(found).toEqual(['https://named/v3', 'https://cwd/v3', 'https://home/v3', 'https://site/v3']);
  });

  it('secure.yaml overrides clouds.yaml key by key', () => {
    const { credentials } = cloudOf(
      { auth: { ...auth, password: undefined } },
      { 'home/.config/openstack/secure.yaml': { clouds: { acme: { auth: { password: 'from secure' } } } } },
    );
    expect(credentials.body).toMatchObject({
      auth: { identity: { password: { user: { name: 'ci', password: 'from secure' } } } },
    });
  });

  it('the cloud overrides a profile of clouds-public.yaml', () => {
    const cloud = cloudOf(
      { profile: 'vendor', auth: { ...auth, auth_url: undefined } },
      {
        'site/clouds-public.yaml': {
          'public-clouds': {
            vendor: { auth: { auth_url: 'https://vendor/v3' }, image_format: 'raw', 'floating-ip-source': 'None' },
          },
        },
      },
    );
    expect(cloud).toMatchObject({ imageFormat: 'raw', floatingIps: false });
    expect(cloud.credentials.identityUrl).toBe('https://vendor/v3');
  });

  it('the environment variables are the separate cloud envvars', () => {
    const env = Object.fromEntries(Object.entries(auth).map(([key, value]) => [`OS_${key.toUpperCase()}`, value]));
    const cloud = readCloud(
      'envvars',
      undefined,
      machine({}, { ...env, OS_REGION_NAME: 'north', OS_CACERT: '/ca.pem' }),
    );
    expect(cloud).toMatchObject({ regionName: 'north', tls: { verify: true, cacert: '/ca.pem' } });
    expect(cloud.credentials.identityUrl).toBe('https://cloud.example.org:5000/v3');
  });

  it.each([
    ['no file exists', {}, /no clouds\.yaml; looked for .*cwd.*openstack.*OS_CLIENT_CONFIG_FILE/],
    [
      'the file lacks the cloud',
      { 'cwd/clouds.yaml': { clouds: { other: {} } } },
      /clouds\.yaml: there is no cloud "acme".*other/,
    ],
    ['the file is not valid YAML', { 'cwd/clouds.yaml': 'clouds: {' }, /clouds\.yaml:1:10: expected valid YAML/],
    ['the file is not a mapping', { 'cwd/clouds.yaml': '[]' }, /clouds\.yaml: expected a mapping/],
    [
      'the profile is unknown',
      { 'cwd/clouds.yaml': { clouds: { acme: { profile: 'nobody' } } } },
      /profile "nobody" is not known.*clouds-public\.yaml/,
    ],
  ])('cause an error with position and reason if %s', (_case, files, message) => {
    expect(messageOf(() => readCloud('acme', undefined, machine(files)))).toMatch(message);
  });
});

describe('credentials', () => {
  const bodyOf = (given: object, more: object = {}): unknown => cloudOf({ auth: given, ...more }).credentials.body;

  it('of the type password contain user and project by name, with their domains', () => {
    expect(bodyOf(auth)).toEqual({
      auth: {
        identity: {
          methods: ['password'],
          password: { user: { name: 'ci', domain: { name: 'Default' }, password: 'secret' } },
        },
        scope: { project: { name: 'ci', domain: { name: 'Default' } } },
      },
    });
  });

  it('of the type password can contain ids, also with the old names of keys', () => {
    const given = { auth_url: auth.auth_url, user_id: 'u1', password: 'p', tenant_id: 't1' };
    expect(bodyOf(given)).toEqual({
      auth: {
        identity: { methods: ['password'], password: { user: { id: 'u1', password: 'p' } } },
        scope: { project: { id: 't1' } },
      },
    });
  });

  it('can have one domain for user and project, or a domain as their scope', () => {
    const { auth_url, username, password, project_name } = auth;
    expect(bodyOf({ auth_url, username, password, project_name, domain_id: 'd1' })).toMatchObject({
      auth: {
        identity: { password: { user: { domain: { id: 'd1' } } } },
        scope: { project: { domain: { id: 'd1' } } },
      },
    });
    expect(bodyOf({ auth_url, username, password, user_domain_id: 'd1', domain_name: 'whole' })).toMatchObject({
      auth: { scope: { domain: { name: 'whole' } } },
    });
  });

  it('of the type token contain the token and its scope', () => {
    expect(bodyOf({ auth_url: auth.auth_url, token: 'abc', project_id: 'p1' }, { auth_type: 'token' })).toEqual({
      auth: { identity: { methods: ['token'], token: { id: 'abc' } }, scope: { project: { id: 'p1' } } },
    });
  });

  it.each([
    ['by id', { application_credential_id: 'a1' }, { id: 'a1', secret: 's' }],
    [
      'by name and user',
      { application_credential_name: 'app', username: 'ci', user_domain_name: 'Default' },
      { name: 'app', secret: 's', user: { name: 'ci', domain: { name: 'Default' } } },
    ],
  ])('of an application credential %s contain no scope', (_case, given, expected) => {
    const all = { auth_url: auth.auth_url, application_credential_secret: 's', project_name: 'ignored', ...given };
    expect(bodyOf(all, { auth_type: 'v3applicationcredential' })).toEqual({
      auth: { identity: { methods: ['application_credential'], application_credential: expected } },
    });
  });

  it.each([
    ['missing auth_url', { ...auth, auth_url: undefined }, {}, 'auth.auth_url is missing'],
    ['invalid auth_url', { ...auth, auth_url: 'cloud.example.org' }, {}, 'is not a URL'],
    ['missing password', { ...auth, password: undefined }, {}, 'auth.password is missing'],
    ['missing username', { ...auth, username: undefined }, {}, 'auth.username is missing'],
    [
      'missing domain of the user',
      { ...auth, user_domain_name: undefined, project_domain_name: undefined },
      {},
      'auth.user_domain_name is missing',
    ],
    [
      'missing secret',
      { ...auth, application_credential_id: 'a' },
      { auth_type: 'v3applicationcredential' },
      'application_credential_secret is missing',
    ],
    ['unsupported auth_type', auth, { auth_type: 'v3oidcpassword' }, 'auth_type "v3oidcpassword" is not supported'],
  ])('are refused with file, cloud and key: %s', (_case, given, more, message) => {
    const said = messageOf(() => bodyOf(given, more));
    expect(said).toContain(message);
    expect(said).toMatch(/clouds\.yaml: cloud acme/);
  });
});

describe('other keys of a cloud', () => {
  it('have the same meaning as for other OpenStack tools', () => {
    const cloud = cloudOf({
      auth,
      interface: 'internalURL',
      region_name: 'north',
      verify: false,
      cacert: '~/ca.pem',
      'compute-api-version': '2.60',
      network_endpoint_override: 'https://net.example.org',
      block_storage_endpoint_override: 'https://vol.example.org/v3/p1',
      networks: [
        { name: 'lan', nat_destination: true },
        { name: 'wan', routes_externally: true },
      ],
    });
    expect(cloud).toMatchObject({
      interface: 'internal',
      regionName: 'north',
      imageFormat: 'qcow2',
      floatingIps: true,
      services: {
        compute: { microversion: '2.60' },
        network: { endpoint: 'https://net.example.org' },
        volume: { endpoint: 'https://vol.example.org/v3/p1' },
      },
      networks: [
        { name: 'lan', natDestination: true },
        { name: 'wan', routesExternally: true },
      ],
    });
    expect(cloud.tls.verify).toBe(false);
    expect(cloud.tls.cacert).toMatch(/home\/ca\.pem$/);
  });

  it('of a region override those of the cloud, and the provider’s region overrides the cloud’s', () => {
    const section = {
      auth,
      region_name: 'north',
      image_format: 'qcow2',
      regions: ['north', { name: 'south', values: { image_format: 'raw' } }],
    };
    expect(cloudOf(section)).toMatchObject({ regionName: 'north', imageFormat: 'qcow2' });
    expect(cloudOf(section, {}, 'south')).toMatchObject({ regionName: 'south', imageFormat: 'raw' });
  });

  it('are refused if the interface is unknown', () => {
    expect(messageOf(() => cloudOf({ auth, interface: 'secret' }))).toContain('expected public, internal or admin');
  });
});
