/** Sample configurations of operators, and their parsed values. */

import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { readFileSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatProblem, loadConfig, type NodepoolConfig } from '@nodepool/config';
import { azureDriver, type AzureProvider } from '../src/index.js';
import type { JsonObject } from '@nodepool/core';
import { readAuth } from '../src/auth.js';
import { section } from './cloud.js';

const FILES = join(__dirname, '..', '..', 'config', 'test', 'files', 'valid');
const folder = mkdtempSync(join(tmpdir(), 'azure-config-'));

/** The samples contain a placeholder for the credentials file. Some double the braces of templates. */
async function load(name: string): Promise<NodepoolConfig> {
  const file = join(folder, name);
  writeFileSync(file, readFileSync(join(FILES, name), 'utf8').replace('{auth_path}', '/etc/azure.json'));
  const driver = azureDriver({});
  const result = await loadConfig({ file, secureFile: undefined, env: {}, discoverDriver: async () => driver });
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  return result.config;
}

async function provider(name: string): Promise<AzureProvider> {
  return (await load(name)).providers.get('azure') as AzureProvider;
}

describe('the configuration of a site', () => {
  it.each(['azure.yaml', 'azure-diskimage.yaml', 'azure-external-image.yaml', 'azure-gallery-image.yaml'])(
    '%s loads',
    async (name) => {
      const { brokenProviders } = await load(name);
      expect([...brokenProviders]).toEqual([]);
      expect(await provider(name)).toMatchObject({
        authPath: '/etc/azure.json',
        location: 'centralus',
        imageFormat: 'vhd',
      });
    },
  );

  it('may have labels whose disk image the provider does not list', async () => {
    const file = join(folder, 'unlisted.yaml');
    const text = readFileSync(join(FILES, 'azure-diskimage.yaml'), 'utf8').replace('{auth_path}', '/etc/azure.json');
    const unlisted = text.replace(/\n {4}diskimages:\n(?: {6}.*\n)+/, '\n    diskimages: []\n');
    expect(unlisted).not.toBe(text);
    writeFileSync(file, unlisted);
    const result = await loadConfig({
      file,
      secureFile: undefined,
      env: {},
      discoverDriver: async () => azureDriver({}),
    });
    expect(result.ok ? [] : result.problems.map(formatProblem)).toEqual([]);
    expect(result.warnings.map(({ hint }) => hint)).toContain(
      'the provider declines requests for this label until the image is listed',
    );
  });

  it('has the sizes, images, logins, tags and custom data of its labels', async () => {
    const labels = (await provider('azure.yaml')).pools.get('main')?.labels;
    expect(labels?.get('bionic')).toMatchObject({
      vmSize: 'Standard_B1ls',
      imageSource: { kind: 'reference', reference: { offer: 'UbuntuServer' } },
      tags: { department: 'R&D' },
      customData: Buffer.from('This is the custom data').toString('base64'),
      addresses: { ipv6: false, publicIpv4: true, publicIpv6: false },
    });
    expect(labels?.get('bionic')?.key).toMatch(/^ssh-rsa/);
    // The provider's password key applies to machines without a password of their own.
    expect(labels?.get('windows-password')).toMatchObject({ password: 'reallybadpassword123', key: undefined });
    expect(labels?.get('windows-generate')).toMatchObject({ generatePassword: true, key: undefined });
    expect(labels?.get('image-by-tag')).toMatchObject({
      imageSource: { kind: 'filter', filter: { tags: { foo: 'bar' } } },
    });
  });

  it('prefers the tags of the provider to those of the disk image', async () => {
    const images = (await provider('azure-diskimage.yaml')).diskImages;
    expect(images.get('fake-image')?.metadata).toEqual({
      diskimage_metadata: 'diskimage',
      provider_metadata: 'provider',
    });
  });
});

describe('tags that Azure would refuse', () => {
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`tag-${index}`, '1']));
  const image = (tags: JsonObject): JsonObject => ({ diskimages: [{ name: 'built', tags }] });

  it.each([
    ['of a label with an invalid name', section({}, { tags: { 'a/b': '1' } })],
    ['of a label, too many', section({}, { tags: many })],
    ['of a request with an invalid name', section({}, { 'dynamic-tags': { 'a/b': '{request.id}' } })],
    ['of a request, too many', section({}, { 'dynamic-tags': many })],
    ['of an image with an invalid name', section(image({ 'a/b': '1' }))],
    ['of an image with a long value', section(image({ long: 'x'.repeat(257) }))],
    ['of an image, too many', section(image(many))],
  ])('%s, are problems of the configuration', (_what, used) => {
    const problems: string[] = [];
    const context = { diskImages: new Map(), labels: new Set(['small']) };
    azureDriver({}).getProviderConfig(used, { ...context, problem: (path) => problems.push(path.join('.')) });
    expect(problems).toHaveLength(1);
  });
});

describe('the driver', () => {
  it("loads none of Microsoft's libraries before a provider starts", () => {
    const loaded = 'Object.keys(require.cache).filter((file) => file.includes("@azure")).length';
    const script = `require(${JSON.stringify(join(__dirname, '..'))}); process.stdout.write(String(${loaded}))`;
    expect(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })).toBe('0');
  });
});

describe('the credentials file', () => {
  const file = join(folder, 'auth.json');
  const right = { subscriptionId: 's', tenantId: 't', clientId: 'c', clientSecret: 'hush' };

  it('has the endpoints of the public Azure by default', () => {
    writeFileSync(file, `\uFEFF${JSON.stringify(right)}`);
    expect(readAuth(file)).toMatchObject({
      endpoint: 'https://management.azure.com',
      login: { kind: 'secret', tenantId: 't', clientId: 'c', clientSecret: 'hush' },
    });
    writeFileSync(file, JSON.stringify({ ...right, resourceManagerEndpointUrl: 'https://arm.example.org/' }));
    expect(readAuth(file).endpoint).toBe('https://arm.example.org');
  });

  it('needs no secret for managed and workload identities', () => {
    const { subscriptionId } = right;
    writeFileSync(file, JSON.stringify({ subscriptionId, authentication: 'managed-identity', clientId: 'c' }));
    expect(readAuth(file).login).toEqual({ kind: 'managed-identity', clientId: 'c' });
    writeFileSync(file, JSON.stringify({ subscriptionId, authentication: 'workload-identity' }));
    expect(readAuth(file).login).toMatchObject({ kind: 'workload-identity', tokenFile: undefined });
  });

  it.each([
    ['a missing field', JSON.stringify({ ...right, tenantId: '' }), 'tenantId is missing'],
    ['an unknown authentication', JSON.stringify({ ...right, authentication: 'trust' }), 'authentication must be'],
    ['an endpoint without TLS', JSON.stringify({ ...right, activeDirectoryEndpointUrl: 'http://x' }), 'https URL'],
    ['content that is not JSON', 'hush', 'is not JSON'],
  ])('is refused with %s, and the error contains no secrets', (_what, content, reason) => {
    writeFileSync(file, content);
    expect(() => readAuth(file)).toThrow(reason);
    expect(() => readAuth(file)).not.toThrow('hush');
  });
});
