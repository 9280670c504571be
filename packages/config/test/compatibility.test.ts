/** Files of existing sites load unchanged, and their broken ones are refused for the real cause. */

import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { formatProblem, loadConfig, type LoadResult, type NodepoolConfig } from '@nodepool/config';
import { standIns } from './stand-in-drivers.js';

const FILES = join(__dirname, 'files');

function load(name: string, secure?: string): Promise<LoadResult> {
  const secureFile = secure === undefined ? undefined : join(FILES, secure);
  return loadConfig({ file: join(FILES, name), secureFile, env: {}, discoverDriver: standIns });
}

async function config(name: string, secure?: string): Promise<NodepoolConfig> {
  const result = await load(name, secure);
  if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
  expect(result.warnings).toEqual([]);
  return result.config;
}

describe('existing files', () => {
  it.each([
    'valid/azure-diskimage.yaml',
    'valid/azure-external-image.yaml',
    'valid/azure-gallery-image.yaml',
    'valid/azure.yaml',
    'valid/gce.yaml',
    'valid/integration_occ.yaml',
    'valid/secure_main.yaml',
    'opendev/builder.yaml',
    'opendev/launcher-nl01.yaml',
  ])('%s loads with all its providers', async (name) => {
    const loaded = await config(name);
    expect(loaded.providers.size).toBeGreaterThan(0);
    expect(loaded.brokenProviders.size).toBe(0);
    expect(loaded.zookeeper.servers.length).toBeGreaterThan(0);
  });

  it('a builder has providers without pools, and images with two levels of inheritance', async () => {
    const loaded = await config('opendev/builder.yaml');
    expect(loaded.zookeeper.servers).toEqual([
      'zk01.example.org:2281',
      'zk02.example.org:2281',
      'zk03.example.org:2281',
    ]);
    expect(loaded.providers.get('rax-iad')?.pools.size).toBe(0);
    expect(loaded.providers.get('rax-iad')?.diskImages.has('ubuntu-noble')).toBe(true);
    const noble = loaded.diskImages.get('ubuntu-noble');
    expect(noble?.elements).toEqual([
      ...['vm', 'simple-init', 'openstack-repos', 'nodepool-base', 'growroot', 'infra-package-needs'],
      ...['ubuntu-minimal', 'cache-devstack'],
    ]);
    expect(noble?.envVars).toMatchObject({
      DIB_CHECKSUM: '1',
      DIB_APT_LOCAL_CACHE: '0',
      DIB_DEBIAN_COMPONENTS: 'main,universe',
    });
    expect(noble).toMatchObject({
      rebuildAgeMs: 86_400_000,
      deleteAfterUpload: true,
      keepFormats: ['qcow2'],
      abstract: false,
    });
    expect(loaded.diskImages.get('ubuntu-xenial')?.rebuildAgeMs).toBe(604_800_000);
    expect(loaded.diskImages.get('base')?.abstract).toBe(true);
  });

  it('anchors give several providers the same labels', async () => {
    const loaded = await config('opendev/launcher-nl01.yaml');
    const dfw = loaded.providers.get('rax-dfw');
    const ord = loaded.providers.get('rax-ord');
    expect([...(ord?.pools.get('main')?.labels.keys() ?? [])]).toEqual([
      ...(dfw?.pools.get('main')?.labels.keys() ?? []),
    ]);
    expect(dfw).toMatchObject({
      driver: 'openstack',
      bootTimeoutMs: 120_000,
      launchTimeoutMs: 600_000,
      callsPerSecond: 1000,
    });
    expect(ord).toMatchObject({ maxConcurrency: 5, launchRetries: 1, callsPerSecond: 100 });
    expect(dfw?.maxConcurrency).toBe(Infinity);
  });

  it('a secure file replaces the ZooKeeper connection, and extends the environment of a build', async () => {
    const loaded = await config('valid/secure_main.yaml', 'valid/secure_secure.yaml');
    expect(loaded.zookeeper).toEqual({
      servers: ['127.0.0.1:2181'],
      chroot: '/compat',
      tls: {
        certFile: '/etc/nodepool/cert.pem',
        keyFile: '/etc/nodepool/key.pem',
        caFile: '/etc/nodepool/ca.pem',
        verifyHostname: true,
      },
      sessionTimeoutMs: 10_000,
    });
    const image = loaded.diskImages.get('fake-image');
    expect(image?.envVars).toMatchObject({ REG_PASSWORD: 'secret', TMPDIR: '/opt/dib_tmp' });
    expect(image?.release).toBe('21');
  });

  it('labels of a cloud image have its login', async () => {
    const loaded = await config('valid/gce.yaml');
    const label = loaded.providers.get('gcloud-provider')?.pools.get('main')?.labels.get('debian-stretch-f1-micro');
    expect(label).toEqual({
      name: 'debian-stretch-f1-micro',
      image: { kind: 'cloud-image', name: 'debian-stretch' },
      connection: { type: 'ssh', port: 22, username: 'zuul', pythonPath: 'auto', shellType: null },
      hostKeyChecking: true,
      consoleLog: false,
    });
    expect(loaded.tenantLimits.get('tenant-1')).toEqual({ cores: 1024 });
    expect(loaded.zookeeper.servers).toEqual(['localhost:2281']);
  });

  it('an image has the properties of the provider in every cloud', async () => {
    const loaded = await config('valid/azure-diskimage.yaml');
    expect(loaded.providers.get('azure')?.diskImages.get('fake-image')?.metadata).toEqual({
      diskimage_metadata: 'diskimage',
      provider_metadata: 'provider',
    });
    expect(loaded.providers.get('azure')?.imageFormat).toBe('vhd');
  });
});

describe('invalid files from existing tests', () => {
  it.each([
    [
      'duplicate_diskimage_name',
      '70:11: diskimages[1].name: expected a name that no other entry of `diskimages` has, found "trusty"',
    ],
    [
      'missing_diskimage_provider',
      '6:15: providers[0].diskimages[0].name: expected the name of a disk image in the top-level `diskimages`, found "wrong"',
    ],
    [
      'missing_parent_diskimage',
      '5:13: diskimages[1].parent: expected the name of another disk image in `diskimages`, found "no-such-image"',
    ],
    [
      'missing_top_label',
      '12:19: providers[0].pools[0].labels[0].name: expected the name of a label in the top-level `labels`, found "trusty"',
    ],
    ['no_diskimage_name', '51:5: diskimages[0].name: expected a string, found nothing; the key is required'],
    ['schema_error', '4:1: nothandled: expected one of the keys build-log-dir, '],
    ['yaml_error', '57:2: expected valid YAML, found an error: '],
  ])('%s is rejected at the line and for the reason', async (name, message) => {
    const file = join(FILES, 'invalid', `${name}.yaml`);
    const result = await loadConfig({ file, env: {}, discoverDriver: standIns });
    const told = result.ok ? [] : result.problems.map(formatProblem);
    expect(told).toContainEqual(expect.stringContaining(`${file}:${message}`));
  });

  it('one with unknown names is rejected even when its driver is not installed', async () => {
    const file = join(FILES, 'invalid/missing_top_label.yaml');
    const discoverDriver = (): Promise<never> => Promise.reject(new Error('not installed'));
    const result = await loadConfig({ file, env: {}, zookeeper: 'optional', discoverDriver });
    expect(result.ok ? [] : result.problems.map((problem) => problem.path)).toContain(
      'providers[0].pools[0].labels[0].name',
    );
  });
});
