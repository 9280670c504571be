/** moto, a simulated AWS by other people, and matching provider sections for the tests `*.moto.test.ts`. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateKeyPairCommand, DescribeSubnetsCommand, EC2Client } from '@aws-sdk/client-ec2';
import type { JsonObject } from '@nodepool/core';
import { findMoto, resetMoto, startMoto } from '@nodepool/moto';
import { PROVIDER } from './cloud.js';

/** Address of a running moto, which `pnpm test:aws` sets. */
export const MOTO_URL = process.env['NODEPOOL_TEST_MOTO'] ?? '';

export const REGION = 'us-east-1';
export const KEY_NAME = 'nodepool';
/** An image that moto has from the start. */
const IMAGE = 'amzn-ami-hvm-2017.09.1.20171103-x86_64-gp2';
const CREDENTIALS = { accessKeyId: 'AKIAMOTO', secretAccessKey: 'secret-of-moto' };

export interface OpenMoto {
  readonly client: EC2Client;
  readonly env: Readonly<Record<string, string>>;
  /** Ids of the default subnets by zone. */
  readonly subnets: Readonly<Record<string, string>>;
  section(change?: JsonObject, label?: JsonObject, pool?: JsonObject): JsonObject;
  close(): Promise<void>;
}

/** Returns the reason why there is no moto; undefined if there is one. */
export function reasonWithoutMoto(): string | undefined {
  if (MOTO_URL !== '') return undefined;
  const found = findMoto();
  return typeof found === 'string' ? found : undefined;
}

/** Opens an empty account of a running moto, or of one that is started. */
export async function openMoto(): Promise<OpenMoto> {
  const found = MOTO_URL === '' ? findMoto() : undefined;
  if (typeof found === 'string') throw new Error(found);
  const started = found === undefined ? undefined : await startMoto(found);
  const url = started?.url ?? MOTO_URL;
  await resetMoto(url);
  const client = new EC2Client({ region: REGION, endpoint: url, credentials: CREDENTIALS });
  await client.send(new CreateKeyPairCommand({ KeyName: KEY_NAME }));
  const { Subnets = [] } = await client.send(new DescribeSubnetsCommand({}));
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
  const file = join(folder, 'credentials');
  const { accessKeyId, secretAccessKey } = CREDENTIALS;
  writeFileSync(file, `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`);
  return {
    client,
    env: { AWS_SHARED_CREDENTIALS_FILE: file },
    subnets: Object.fromEntries(
      Subnets.map(({ AvailabilityZone = '', SubnetId = '' }) => [AvailabilityZone, SubnetId]),
    ),
    section: (change = {}, label = {}, pool = {}) => ({
      name: PROVIDER,
      driver: 'aws',
      'region-name': REGION,
      'endpoint-url': url,
      rate: 20,
      'cloud-images': [
        {
          name: 'amazon',
          username: 'ec2-user',
          'image-filters': [{ name: 'name', values: [IMAGE] }],
          owners: ['amazon'],
        },
      ],
      pools: [{ name: 'main', 'max-servers': 100, ...pool, labels: [labelOf(label)] }],
      ...change,
    }),
    async close() {
      client.destroy();
      rmSync(folder, { recursive: true });
      await started?.stop();
    },
  };
}

function labelOf(label: JsonObject): JsonObject {
  const common = { name: 'small', 'cloud-image': 'amazon', 'key-name': KEY_NAME };
  return 'fleet' in label ? { ...common, ...label } : { ...common, 'instance-type': 'm5.large', ...label };
}
