/** `nodepool init` of the built program against simulated clouds, and what the other commands say of the result. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { programPath } from '@nodepool/harness';
import { KEY_NAME, REGION, startSimulatedAws } from '@nodepool/simulated-aws';
import { startSimulatedAzure } from '@nodepool/simulated-azure';
import { PROJECT, startSimulatedGce } from '@nodepool/simulated-gce';
import { startSimulatedOpenStack } from '@nodepool/simulated-openstack';

const DEADLINE_MS = 120_000;
const run = promisify(execFile);

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'first-hour-'));
  file = join(folder, 'nodepool.yaml');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function nodepool(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const { stdout } = await run(process.execPath, [programPath('nodepool'), '-c', file, ...args], {
    env: { PATH: process.env['PATH'], HOME: folder, ...env },
    timeout: DEADLINE_MS,
  });
  return stdout.trim();
}

/** Writes a configuration, checks it, and returns its text. */
async function written(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  await nodepool(['init', '--label', 'debian', ...args], env);
  expect(await nodepool(['config-validate'], env)).toBe('the configuration is valid');
  return readFileSync(file, 'utf8');
}

it(
  'OpenStack: the only image and network are chosen',
  async () => {
    const cloud = await startSimulatedOpenStack();
    try {
      const env = { OS_CLIENT_CONFIG_FILE: cloud.cloudsYaml };
      const text = await written(['--driver', 'openstack', '--set', 'cloud=real', '--machine-type', 'm1.small'], env);
      expect(text).toMatch(/image-name: test-image[\s\S]*networks:\n {10}- private[\s\S]*flavor-name: m1\.small/);
      expect(cloud.inspect.servers()).toEqual([]);
    } finally {
      await cloud.close();
    }
  },
  DEADLINE_MS,
);

it(
  'AWS: the credentials come from the usual file',
  async () => {
    const cloud = await startSimulatedAws();
    try {
      const credentials = join(folder, 'credentials');
      const { accessKeyId, secretAccessKey } = cloud.credentials;
      const keys = `aws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`;
      writeFileSync(credentials, `[default]\n${keys}`);
      const [subnet = ''] = Object.values(cloud.subnets);
      const settings = { 'region-name': REGION, 'key-name': KEY_NAME, 'endpoint-url': cloud.url };
      const set = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
      const text = await written(
        ['--driver', 'aws', ...set, '--machine-type', 'm5.large', '--image', cloud.publicImageId, '--network', subnet],
        { AWS_SHARED_CREDENTIALS_FILE: credentials },
      );
      expect(text).toContain(`subnet-id: ${subnet}`);
      expect(text).toContain('username: ec2-user');
    } finally {
      await cloud.close();
    }
  },
  DEADLINE_MS,
);

it(
  'Google Compute Engine: a public image by its family',
  async () => {
    const cloud = await startSimulatedGce();
    try {
      const settings = {
        ...{ project: PROJECT, region: 'us-central1', key: 'ssh-ed25519 AAAA ci' },
        ...{ 'credentials-file': cloud.credentialsFile, 'api-endpoint': cloud.url, 'storage-endpoint': cloud.url },
      };
      const set = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
      const chosen = [
        '--zone',
        'us-central1-b',
        '--machine-type',
        'e2-standard-2',
        '--image',
        'debian-cloud/debian-12',
      ];
      const text = await written(['--driver', 'gce', ...set, ...chosen]);
      expect(text).toMatch(/zone: us-central1-b[\s\S]*image-family: debian-12/);
    } finally {
      await cloud.close();
    }
  },
  DEADLINE_MS,
);

it(
  'Azure: without an image, the message has those of the cloud, and no file is written',
  async () => {
    const cloud = await startSimulatedAzure();
    try {
      const env = { AZURE_AUTH_LOCATION: cloud.authFile };
      const settings = {
        location: 'centralus',
        'resource-group': 'nodepool',
        'zuul-public-key': 'ssh-ed25519 AAAA ci',
      };
      const set = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
      const args = ['init', '--driver', 'azure', ...set, '--machine-type', 'Standard_B1ls'];
      await expect(nodepool(args, env)).rejects.toMatchObject({
        stderr: expect.stringContaining('choose the image with --image; the cloud has:\n  1. Debian:debian-12'),
      });
      expect(() => readFileSync(file)).toThrow('ENOENT');
    } finally {
      await cloud.close();
    }
  },
  DEADLINE_MS,
);
