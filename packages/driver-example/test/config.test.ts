/** Validation of provider sections. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { isJsonObject, type JsonObject } from '@nodepool/core';
import { loadConfig, type LoadResult } from '@nodepool/config';
import type { ExampleLabel, ExampleProvider } from '../src/config.js';
import { CLOUD_SETTING_NAMES } from '../src/cloud/settings-schema.js';
import { FAULTS } from '../src/cloud/settings.js';
import { driver, readCloudSettings } from '../src/index.js';
import { section } from './provider.js';

/** Loads a configuration file with this provider only. JSON is valid YAML. */
async function load(provider: JsonObject): Promise<LoadResult> {
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-example-'));
  try {
    const file = join(folder, 'nodepool.yaml');
    const config = {
      'zookeeper-servers': [{ host: 'localhost' }],
      labels: [{ name: 'small' }],
      diskimages: [{ name: 'built', username: 'builder', metadata: { os: 'linux' } }],
      providers: [provider],
    };
    await writeFile(file, JSON.stringify(config, undefined, 1));
    return await loadConfig({ file, env: {}, discoverDriver: async () => driver });
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function loadGood(provider: JsonObject): Promise<ExampleProvider> {
  const result = await load(provider);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config.providers.get('demo') as ExampleProvider;
}

async function problemsOf(provider: JsonObject): Promise<string[]> {
  const result = await load(provider);
  if (result.ok) throw new Error('the configuration was accepted');
  return result.problems.map(({ path, expected }) => `${path}: ${expected}`);
}

function labelOf(provider: ExampleProvider): ExampleLabel {
  const label = provider.pools.get('main')?.labels.get('small');
  if (label === undefined) throw new Error('the label is missing');
  return label;
}

describe('the configuration of a provider', () => {
  it('needs only a label with an image, and then uses a cloud without faults inside the launcher', async () => {
    const provider = await loadGood(section());
    expect(provider).toMatchObject({ endpoint: undefined, callsPerSecond: Infinity, bootTimeoutMs: 60_000 });
    expect(provider.cloudSettings).toEqual(readCloudSettings({}));
    expect(labelOf(provider)).toMatchObject({
      size: 'small',
      cloudImage: 'debian',
      image: { kind: 'cloud-image', name: 'debian' },
      connection: { type: 'ssh', port: 22, username: 'root' },
    });
  });

  it('sets the behaviour of the cloud', async () => {
    const { cloudSettings } = await loadGood(
      section({
        cloud: {
          'boot-time': [1, 2.5],
          'delete-time': 3,
          'api-latency': 0.1,
          'list-lag': 4,
          'rate-limit': 5,
          quota: { instances: 6, cores: -1 },
          zones: ['a', 'b'],
          sizes: [{ name: 'tiny', cores: 1, ram: 128 }],
          'public-images': ['debian'],
          'page-size': 7,
          ssh: true,
          faults: { 'lost-answers': 0.5 },
        },
      }),
    );
    expect(cloudSettings).toMatchObject({
      bootTimeMs: [1000, 2500],
      deleteTimeMs: [3000, 3000],
      apiLatencyMs: [100, 100],
      listLagMs: [4000, 4000],
      callsPerSecond: 5,
      quota: { instances: 6, cores: Infinity, ram: Infinity },
      zones: ['a', 'b'],
      sizes: [{ name: 'tiny', cores: 1, ram: 128 }],
      publicImages: ['debian'],
      pageSize: 7,
      ssh: true,
      faults: { 'lost-answers': 0.5, 'create-errors': 0 },
    });
  });

  it('can contain another image name, cores and ram, pool limits and zones', async () => {
    const provider = await loadGood({
      ...section({ 'cloud-images': [{ name: 'debian', image: 'debian-12' }] }, {}, {}),
      pools: [
        {
          name: 'main',
          'availability-zones': ['a'],
          'max-cores': 10,
          'max-ram': 2048,
          labels: [{ name: 'small', 'cloud-image': 'debian', cores: 3, ram: 300, 'console-log': true }],
        },
      ],
    });
    expect(labelOf(provider)).toMatchObject({ cloudImage: 'debian-12', cores: 3, ram: 300, consoleLog: true });
    expect(provider.pools.get('main')).toMatchObject({ limits: { cores: 10, ram: 2048 }, availabilityZones: ['a'] });
  });

  it('accepts disk images with a format and properties', async () => {
    const provider = await loadGood({
      ...section({ 'image-format': 'qcow2', diskimages: [{ name: 'built', meta: { a: 1 } }] }),
      pools: [{ name: 'main', labels: [{ name: 'small', diskimage: 'built' }] }],
    });
    expect(provider.imageFormat).toBe('qcow2');
    expect(provider.diskImages.get('built')).toMatchObject({ metadata: { os: 'linux', a: '1' } });
    expect(labelOf(provider).connection.username).toBe('builder');
  });

  it.each([
    ['no ssh in the cloud', {}, {}, false],
    ['ssh in the cloud', { cloud: { ssh: true } }, {}, true],
    ['a separate cloud', { endpoint: 'http://127.0.0.1:8480' }, {}, true],
    ['host-key-checking: true', {}, { 'host-key-checking': true }, true],
    ['host-key-checking: false', { cloud: { ssh: true } }, { 'host-key-checking': false }, false],
  ])('checks host keys only if the instances accept logins: %s', async (_case, provider, pool, expected) => {
    expect(labelOf(await loadGood(section(provider, {}, pool))).hostKeyChecking).toBe(expected);
  });

  it.each([
    ['a misspelt key', { edpoint: 'http://x' }, 'providers[0]'],
    ['an endpoint that is not a URL', { endpoint: '127.0.0.1:8480' }, 'providers[0].endpoint'],
    ['settings of a separate cloud', { endpoint: 'http://x', cloud: {} }, 'providers[0].cloud'],
    ['an unknown setting', { cloud: { 'boot-tim': 1 } }, 'providers[0].cloud'],
    ['a negative time', { cloud: { 'boot-time': -1 } }, 'providers[0].cloud.boot-time'],
    ['a reversed range', { cloud: { 'boot-time': [2, 1] } }, 'providers[0].cloud.boot-time'],
    ['a probability above one', { cloud: { faults: { 'lost-answers': 2 } } }, 'providers[0].cloud.faults.lost-answers'],
    ['no zones', { cloud: { zones: [] } }, 'providers[0].cloud.zones'],
  ])('is refused with %s, with the path of the key', async (_case, change, place) => {
    const problems = await problemsOf(section(change));
    expect(problems).not.toHaveLength(0);
    for (const problem of problems) expect(problem.startsWith(place)).toBe(true);
  });

  it('is refused with both a size and cores', async () => {
    const problems = await problemsOf(section({}, { cores: 2 }));
    expect(problems).toEqual(['providers[0].pools[0].labels[0].size: either `size`, or `cores` and `ram`']);
  });
});

describe('the schema', () => {
  it('describes every key', () => {
    const undescribed: string[] = [];
    const visit = (value: unknown, place: string): void => {
      if (!isJsonObject(value)) return;
      const properties = value['properties'];
      if (isJsonObject(properties)) {
        for (const [key, property] of Object.entries(properties)) {
          if (!isJsonObject(property) || typeof property['description'] !== 'string')
            undescribed.push(`${place}.${key}`);
          visit(property, `${place}.${key}`);
        }
      }
      visit(value['items'], `${place}[]`);
    };
    visit(driver.schema, 'provider');
    expect(undescribed).toEqual([]);
  });
});

describe('settings of another source than a validated file', () => {
  it.each([
    [{ 'boot-time': 'soon' }, 'boot-time'],
    [{ 'boot-time': [1] }, 'boot-time'],
    [{ 'rate-limit': 0 }, 'rate-limit'],
    [{ quota: 5 }, 'quota'],
    [{ quota: { disks: 5 } }, 'quota.disks'],
    [{ quota: { cores: 'many' } }, 'quota.cores'],
    [{ zones: 'a' }, 'zones'],
    [{ sizes: [{ name: 'x' }] }, 'sizes[0]'],
    [{ 'page-size': 0 }, 'page-size'],
    [{ ssh: 'yes' }, 'ssh'],
    [{ faults: { 'lost-answers': 1.5 } }, 'faults.lost-answers'],
    [{ faults: { gremlins: 1 } }, 'faults.gremlins'],
    [{ nonsense: 1 }, 'nonsense'],
  ])('are refused with the key and the expected value: %j', (settings, key) => {
    expect(() => readCloudSettings(settings as JsonObject)).toThrow(
      expect.objectContaining({ key, message: expect.stringContaining('expected') }),
    );
  });
});

describe('alternative sizes of a label', () => {
  const sizes = (...names: string[]): JsonObject =>
    section({}, {}, { labels: [{ name: 'small', 'cloud-image': 'debian', sizes: names }] });

  it('are its machine types, and the first one is the preferred size', async () => {
    expect(labelOf(await loadGood(sizes('large', 'small')))).toMatchObject({
      machineTypes: ['large', 'small'],
      size: 'large',
    });
    expect(labelOf(await loadGood(section())).machineTypes).toBeUndefined();
  });

  it('exclude a single size, amounts and repetitions, with path and remedy', async () => {
    const both = await load(section({}, { sizes: ['large'] }));
    expect(both.ok ? [] : both.problems).toEqual([
      expect.objectContaining({
        path: 'providers[0].pools[0].labels[0]',
        expected: 'at most one of the keys size or sizes',
        found: 'size and sizes',
        hint: 'remove one of them',
      }),
    ]);
    expect(await problemsOf(sizes('large', 'large'))).toEqual([
      'providers[0].pools[0].labels[0].sizes: a list without repetitions',
    ]);
    expect(await problemsOf(sizes())).toEqual(['providers[0].pools[0].labels[0].sizes: a list of at least 1']);
    const amounts = { name: 'small', 'cloud-image': 'debian', sizes: ['large'], cores: 2 };
    expect(await problemsOf(section({}, {}, { labels: [amounts] }))).toEqual([
      'providers[0].pools[0].labels[0].sizes: either `sizes`, or `cores` and `ram`',
    ]);
  });
});

it('the README lists every setting of the cloud and every fault', async () => {
  const readme = await readFile(join(__dirname, '../README.md'), 'utf8');
  const [, settings = ''] = /^### Settings of the cloud$(.*?)^## /ms.exec(readme) ?? [];
  const listed = [...settings.matchAll(/^\| `([a-z-]+)/gm)].map(([, name]) => name);
  expect(listed.sort()).toEqual([...CLOUD_SETTING_NAMES, ...Object.keys(FAULTS)].sort());
});
