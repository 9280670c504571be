/** The configuration of a real site and its parsed values. */

import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatProblem, loadConfig, type LoadResult } from '@nodepool/config';
import type { JsonObject } from '@nodepool/core';
import { driver } from '../src/index.js';
import { section } from './cloud.js';

const FILES = join(__dirname, '..', '..', 'config', 'test', 'files', 'valid');

function load(file: string): Promise<LoadResult> {
  return loadConfig({ file, secureFile: undefined, env: {}, discoverDriver: async () => driver });
}

async function problemsOf(provider: JsonObject): Promise<readonly string[]> {
  const file = join(mkdtempSync(join(tmpdir(), 'gce-config-')), 'nodepool.yaml');
  const labels = [{ name: 'small' }];
  writeFileSync(file, JSON.stringify({ 'zookeeper-servers': [{ host: 'zk' }], labels, providers: [provider] }));
  const result = await load(file);
  return result.ok ? [] : result.problems.map(formatProblem);
}

describe('the configuration', () => {
  it('is read from the file of a real site, with the defaults of the driver', async () => {
    const result = await load(join(FILES, 'gce.yaml'));
    if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
    expect(result.warnings).toEqual([]);
    const provider = result.config.providers.get('gcloud-provider');
    expect(provider).toMatchObject({
      project: 'gcloud-project',
      region: 'us-central1',
      zone: 'us-central1-a',
      callsPerSecond: 2,
      bootTimeoutMs: 60_000,
      launchTimeoutMs: 3_600_000,
      launchRetries: 3,
      imageFormat: 'raw',
    });
    expect(provider).toMatchObject({ internalPools: new Set(['main']) });
    const pool = provider?.pools.get('main');
    expect(pool).toMatchObject({ maxServers: 8, availabilityZones: ['us-central1-a'] });
    expect(pool?.labels.get('debian-stretch-f1-micro')).toMatchObject({
      cloudImage: 'projects/debian-cloud/global/images/family/debian-9',
      instanceType: 'f1-micro',
      key: 'ssh-rsa something zuul',
      volumeType: 'standard',
      volumeSize: 10,
      network: 'global/networks/default',
      publicIpv4: true,
      provisioning: 'standard',
    });
  });

  it('has no default network if it has a subnetwork', () => {
    const context = { diskImages: new Map(), labels: new Set(['small']), problem: () => undefined };
    const networkOf = (pool: JsonObject): unknown => {
      const config = driver.getProviderConfig(section({}, {}, pool), context);
      return config.pools.get('main')?.labels.get('small');
    };
    const path = 'projects/host/regions/us-central1/subnetworks/shared';
    expect(networkOf({ subnetwork: path })).toMatchObject({ network: undefined, subnetwork: path });
    expect(networkOf({ subnetwork: 'ci', network: 'ci' })).toMatchObject({ network: 'global/networks/ci' });
  });

  it('accepts rate-limit as another name of rate', async () => {
    const context = { diskImages: new Map(), labels: new Set<string>(), problem: () => undefined };
    const { rate: _rate, ...others } = section();
    expect(driver.getProviderConfig({ ...others, 'rate-limit': 7 }, context).callsPerSecond).toBe(7);
  });

  it.each([
    [
      'an image with both id and family',
      { 'cloud-images': [{ name: 'debian', 'image-id': 'a', 'image-family': 'b' }] },
    ],
    ['an image without id and family', { 'cloud-images': [{ name: 'debian' }] }],
    ['a family without its project', { 'cloud-images': [{ name: 'debian', 'image-family': 'b' }] }],
    ['an endpoint with a path', { 'api-endpoint': 'https://compute.example.org/compute/v1' }],
  ])('is refused with %s', async (_what, change) => {
    expect(await problemsOf(section(change))).not.toEqual([]);
    expect(await problemsOf(section())).toEqual([]);
  });

  it('is refused with an invalid Google Cloud label', async () => {
    const [problem] = await problemsOf(section({}, { labels: { Team: 'CI' } }));
    expect(problem).toContain('labels');
  });
});

describe('the driver', () => {
  it("loads none of Google's libraries before a provider starts", () => {
    const loaded = 'Object.keys(require.cache).filter((file) => /google(apis|-auth)/.test(file)).length';
    const script = `require(${JSON.stringify(join(__dirname, '..'))}); process.stdout.write(String(${loaded}))`;
    expect(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' })).toBe('0');
  });
});
