/** A simulated AWS and matching provider sections for the tests of this package. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '@nodepool/core/testing';
import type { ExternalId, JsonObject } from '@nodepool/core';
import {
  KEY_NAME,
  REGION,
  startSimulatedAws,
  type AwsCredentials,
  type AwsSettings,
  type SimulatedAws,
} from '@nodepool/simulated-aws';
import { simulatedTime, type TestTime } from '@nodepool/driver-kit';

export const PROVIDER = 'test';

export interface OpenCloud {
  readonly time: TestTime;
  readonly cloud: SimulatedAws;
  readonly env: Readonly<Record<string, string>>;
  /** Replaces the credentials in the file. */
  writeCredentials(credentials: AwsCredentials): void;
  close(): Promise<void>;
}

/** Returns a provider section with a pool `main`, a label `small` and the given keys. */
export function section(
  { cloud }: Pick<OpenCloud, 'cloud'>,
  change: JsonObject = {},
  label: JsonObject = {},
  pool: JsonObject = {},
): JsonObject {
  const { 'instance-types': types, fleet, ...others } = label;
  const hardware =
    types === undefined && fleet === undefined
      ? { 'instance-type': 'm5.large' }
      : { ...(types === undefined ? {} : { 'instance-types': types }), ...(fleet === undefined ? {} : { fleet }) };
  return {
    name: PROVIDER,
    driver: 'aws',
    rate: 0,
    'region-name': REGION,
    'endpoint-url': cloud.url,
    'cloud-images': [{ name: 'amazon', username: 'ec2-user', 'image-id': cloud.publicImageId }],
    pools: [
      {
        name: 'main',
        'max-servers': 1000,
        labels: [{ name: 'small', 'cloud-image': 'amazon', 'key-name': KEY_NAME, ...hardware, ...others }],
        ...pool,
      },
    ],
    ...change,
  };
}

/** Opens a simulated cloud on simulated time. */
export async function openCloud(settings: Partial<AwsSettings> = {}): Promise<OpenCloud> {
  const time = simulatedTime();
  const cloud = await startSimulatedAws({ clock: time.clock, random: seededRandom(1), settings });
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-aws-'));
  const file = join(folder, 'credentials');
  const writeCredentials = ({ accessKeyId, secretAccessKey, sessionToken }: AwsCredentials): void => {
    const token = sessionToken === undefined ? '' : `aws_session_token = ${sessionToken}\n`;
    writeFileSync(
      file,
      `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n${token}`,
    );
  };
  writeCredentials(cloud.credentials);
  return {
    time,
    cloud,
    env: { AWS_SHARED_CREDENTIALS_FILE: file },
    writeCredentials,
    async close() {
      await cloud.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Returns an id of EC2. */
export function idOf(externalId: ExternalId | undefined): string {
  if (typeof externalId === 'string') return externalId;
  throw new TypeError('ids of AWS are texts');
}
