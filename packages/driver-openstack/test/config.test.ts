/** Configurations of real sites and their parsed values. */

import { describe, expect, it } from '@jest/globals';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatProblem, loadConfig, type NodepoolConfig } from '@nodepool/config';
import type { ProviderConfig } from '@nodepool/core';
import { openStackDriver, type OpenStackProvider, type Environment } from '../src/index.js';

const FILES = join(__dirname, '..', '..', 'config', 'test', 'files');
const nowhere: Environment = { env: {}, cwd: '/nowhere', home: '/nowhere', siteDirectories: [] };

async function load(file: string, environment = nowhere): Promise<NodepoolConfig> {
  const driver = openStackDriver(environment);
  const result = await loadConfig({ file, secureFile: undefined, env: {}, discoverDriver: async () => driver });
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  // The `clouds.yaml` files of these sites do not exist here.
  expect(result.warnings.filter(({ path }) => !path.endsWith('.cloud'))).toEqual([]);
  return result.config;
}

function openStack(config: ProviderConfig | undefined): OpenStackProvider {
  if (config === undefined || !('cloud' in config)) throw new Error('the provider belongs to another driver');
  return config as OpenStackProvider;
}

describe('the configuration of a real site', () => {
  it.each([
    'opendev/launcher-nl01.yaml',
    'opendev/builder.yaml',
    'valid/integration_occ.yaml',
    'valid/secure_main.yaml',
  ])('%s loads without a clouds.yaml', async (name) => {
    const { providers, brokenProviders } = await load(join(FILES, name));
    expect(providers.size).toBeGreaterThan(0);
    expect(brokenProviders.size).toBe(0);
    for (const provider of providers.values()) expect(provider.imageFormat).toBe('qcow2');
  });

  it('has cloud, region, rate, flavors, networks and config drives', async () => {
    const { providers } = await load(join(FILES, 'opendev/launcher-nl01.yaml'));
    const rax = openStack(providers.get('rax-ord'));
    expect(rax).toMatchObject({
      cloud: 'rax',
      regionName: 'ORD',
      callsPerSecond: 100,
      launchRetries: 1,
      maxConcurrency: 5,
    });
    expect(rax.pools.get('main')?.labels.get('debian-bookworm')).toMatchObject({
      flavor: { minRam: 8000, name: 'Performance' },
      configDrive: true,
      keyName: 'infra-root-keys-2024-04-08',
      autoFloatingIp: true,
      networks: [],
    });
    const flex = openStack(providers.get('raxflex-dfw3'));
    expect(flex.callsPerSecond).toBe(1);
    expect(flex.pools.get('main')?.labels.get('ubuntu-noble')).toMatchObject({
      flavor: { minRam: undefined, name: 'gp.5.4.8' },
      networks: ['opendevzuul-network1'],
    });
  });

  it('uses the image format of clouds.yaml for uploads', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'clouds-'));
    const auth = { auth_url: 'https://id.example.org', username: 'u', password: 'p', user_domain_id: 'default' };
    const clouds = { vexxhost: { auth, image_format: 'raw' } };
    writeFileSync(join(folder, 'clouds.yaml'), JSON.stringify({ clouds }));
    const { providers } = await load(join(FILES, 'opendev/builder.yaml'), { ...nowhere, cwd: folder });
    expect(providers.get('vexxhost-sjc1')?.imageFormat).toBe('raw');
    expect(providers.get('ovh-gra1')?.imageFormat).toBe('qcow2');
    expect(providers.get('ovh-gra1')?.imageUpload?.imageUploadTimeoutMs).toBe(21_600_000);
  });

  it('has a warning for each provider whose cloud is missing in clouds.yaml', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'clouds-'));
    const auth = { auth_url: 'https://id.example.org', username: 'u', password: 'p', user_domain_id: 'default' };
    writeFileSync(join(folder, 'clouds.yaml'), JSON.stringify({ clouds: { known: { auth } } }));
    const file = join(folder, 'nodepool.yaml');
    writeFileSync(file, 'providers:\n- {name: good, cloud: known}\n- {name: bad, cloud: knwon}\n');
    const driver = openStackDriver({ ...nowhere, cwd: folder });
    const result = await loadConfig({ file, env: {}, zookeeper: 'optional', discoverDriver: async () => driver });
    if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
    expect([...result.config.providers.keys()]).toEqual(['good', 'bad']);
    expect([...result.unserved]).toEqual(['bad']);
    expect(result.warnings.map(({ line, path, hint }) => [line, path, hint])).toEqual([
      [3, 'providers[1].cloud', expect.stringContaining('there is no cloud "knwon" under "clouds"; there are: known')],
    ]);
    const options = { file, env: {}, zookeeper: 'optional', discoverDriver: async () => driver } as const;
    const alone = await loadConfig({ ...options, withoutEnvironment: true });
    expect(alone).toMatchObject({ ok: true, warnings: [] });
  });
});
