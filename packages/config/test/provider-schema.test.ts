/** The helpers for drivers: a schema with the common keys, and the common part of their configuration. */

import { describe, expect, it } from '@jest/globals';
import {
  booleanAt,
  isJsonObject,
  loadCommonProvider,
  numberAt,
  providerSchema,
  stringAt,
  type Driver,
  type JsonValue,
  type LabelConfig,
  type PoolConfig,
  type ProviderDefaults,
} from '@nodepool/core';
import { configOf, problemsOf } from './files.js';
import { only } from './stand-in-drivers.js';

interface TestLabel extends LabelConfig {
  readonly size: number;
  readonly imageId: string | undefined;
}

interface TestPool extends PoolConfig<TestLabel> {
  readonly internal: boolean;
}

function testDriver(defaults: ProviderDefaults): Driver {
  return {
    name: 'test',
    schema: providerSchema({
      defaults,
      pool: {
        properties: { 'max-ram': { type: 'integer', description: 'MiB.' }, 'availability-zones': { type: 'array' } },
      },
      label: { properties: { size: { type: 'integer', default: 1, description: 'Size.' } } },
      diskImage: { properties: { meta: { type: 'object' } }, without: ['connection-port'] },
      cloudImage: { properties: { id: { type: 'string', description: 'Id.' } }, required: ['id'] },
    }),
    getProviderConfig: (section, context) =>
      loadCommonProvider<TestLabel, TestPool>(section, context, {
        defaults,
        imageFormat: 'raw',
        loadLabel: (label, { section: own, imageSection }) => ({
          ...label,
          size: numberAt(own, 'size') ?? 1,
          imageId: stringAt(imageSection, 'id'),
        }),
        loadPool: (pool, { section: own }) => ({ ...pool, internal: booleanAt(own, 'use-internal-ip') ?? false }),
      }),
    getProvider: () => {
      throw new Error('a stand-in has no clouds');
    },
  };
}

const perSecond: ProviderDefaults = { bootTimeoutSeconds: 90, rateUnit: 'calls-per-second' };

function options(defaults: ProviderDefaults = perSecond): { discoverDriver: ReturnType<typeof only> } {
  return { discoverDriver: only(testDriver(defaults)) };
}

function file(provider: string): string {
  return `
labels: [{name: l}, {name: m}]
diskimages: [{name: noble, username: builder, python-path: /py, shell-type: fish, metadata: {a: "1", b: "1"}}]
providers:
  - {name: p, driver: test, ${provider}}
`;
}

describe('the common part of a provider', () => {
  it('has defaults', async () => {
    const config = await configOf(file('pools: [{name: main}]'), options());
    const provider = config.providers.get('p');
    expect(provider).toMatchObject({
      driver: 'test',
      priority: 100,
      maxConcurrency: Infinity,
      launchRetries: 3,
      launchTimeoutMs: 3_600_000,
      bootTimeoutMs: 90_000,
      callsPerSecond: Infinity,
      imageFormat: 'raw',
    });
    expect(provider?.pools.get('main')).toEqual({
      name: 'main',
      priority: 100,
      maxServers: Infinity,
      limits: {},
      nodeAttributes: {},
      availabilityZones: [],
      labels: new Map(),
      internal: false,
    });
  });

  it('passes priority from provider to pool, and host key checking from pool to label', async () => {
    const labels = 'labels: [{name: l, diskimage: noble}, {name: m, diskimage: noble, host-key-checking: true}]';
    const pools = `pools: [{name: a, host-key-checking: false, ${labels}}, {name: b, priority: 7, max-servers: 0, max-ram: 5}]`;
    const config = await configOf(file(`priority: 50, diskimages: [{name: noble}], ${pools}`), options());
    const a = config.providers.get('p')?.pools.get('a');
    expect(a?.priority).toBe(50);
    expect(a?.labels.get('l')?.hostKeyChecking).toBe(false);
    expect(a?.labels.get('m')?.hostKeyChecking).toBe(true);
    expect(config.providers.get('p')?.pools.get('b')).toMatchObject({ priority: 7, maxServers: 0, limits: { ram: 5 } });
  });

  it('contains the login of nodes from disk images and from cloud images', async () => {
    const images =
      'diskimages: [{name: noble, meta: {b: "2"}}], cloud-images: [{name: win, id: w1, connection-type: winrm, username: admin}]';
    const pools = 'pools: [{name: a, labels: [{name: l, diskimage: noble}, {name: m, cloud-image: win, size: 4}]}]';
    const config = await configOf(file(`${images}, ${pools}`), options());
    const provider = config.providers.get('p');
    const labels = provider?.pools.get('a')?.labels;
    expect(labels?.get('l')).toMatchObject({
      image: { kind: 'diskimage', name: 'noble' },
      connection: { type: 'ssh', port: 22, username: 'builder', pythonPath: '/py', shellType: 'fish' },
      size: 1,
    });
    expect(labels?.get('m')).toMatchObject({
      image: { kind: 'cloud-image', name: 'win' },
      connection: { type: 'winrm', port: 5986, username: 'admin', pythonPath: 'auto', shellType: null },
      size: 4,
      imageId: 'w1',
    });
    expect(provider?.diskImages.get('noble')).toEqual({ name: 'noble', pause: false, metadata: { a: '1', b: '2' } });
  });

  it.each<[string, ProviderDefaults, number]>([
    ['rate: 4', perSecond, 4],
    ['rate: "0.5"', perSecond, 0.5],
    ['rate: 0', perSecond, Infinity],
    ['priority: 1', { ...perSecond, rate: 2 }, 2],
    ['rate: 0.001', { ...perSecond, rateUnit: 'seconds-between-calls' }, 1000],
    ['priority: 1', { ...perSecond, rate: 4, rateUnit: 'seconds-between-calls' }, 0.25],
    ['rate: 0', { ...perSecond, rate: 4, rateUnit: 'seconds-between-calls' }, Infinity],
  ])('reads `%s` in the unit of the driver (%j)', async (keys, defaults, callsPerSecond) => {
    const config = await configOf(file(keys), options(defaults));
    expect(config.providers.get('p')?.callsPerSecond).toBeCloseTo(callsPerSecond, 9);
  });

  it.each([
    ['max-concurrency: 0', 0],
    ['max-concurrency: -1', Infinity],
    ['max-concurrency: 3', 3],
  ])('reads `%s`', async (keys, maxConcurrency) => {
    const config = await configOf(file(keys), options());
    expect(config.providers.get('p')?.maxConcurrency).toBe(maxConcurrency);
  });
});

describe('the schema of a provider', () => {
  it('rejects keys unknown to core and driver at every level', async () => {
    const text = file(
      'bot-timeout: 1, diskimages: [{name: noble, connection-port: 22}], cloud-images: [{name: c}], pools: [{name: a, maxservers: 1, labels: [{name: l, diskimage: noble, cloud-image: c}]}]',
    );
    const problems = await problemsOf(text, options());
    expect(problems.map((problem) => problem.path).sort()).toEqual([
      'providers[0].bot-timeout',
      'providers[0].cloud-images[0].id',
      'providers[0].diskimages[0].connection-port',
      'providers[0].pools[0].labels[0]',
      'providers[0].pools[0].maxservers',
    ]);
    const hints = Object.fromEntries(problems.map((problem) => [problem.path, problem.hint]));
    expect(hints['providers[0].bot-timeout']).toBe('did you mean "boot-timeout"?');
    expect(hints['providers[0].pools[0].maxservers']).toBe('did you mean "max-servers"?');
    expect(problems.find((problem) => problem.path.endsWith('labels[0]'))?.found).toBe('diskimage and cloud-image');
  });

  it('describes every key that core adds', () => {
    const missing: string[] = [];
    const visit = (schema: JsonValue | undefined, path: string): void => {
      if (!isJsonObject(schema)) return;
      visit(schema['items'], `${path}[]`);
      for (const [key, value] of Object.entries(isJsonObject(schema['properties']) ? schema['properties'] : {})) {
        if (isJsonObject(value) && typeof value['description'] !== 'string') missing.push(`${path}.${key}`);
        visit(value, `${path}.${key}`);
      }
    };
    visit(providerSchema({ defaults: perSecond, diskImage: {}, cloudImage: {} }), 'provider');
    expect(missing).toEqual([]);
  });
});
