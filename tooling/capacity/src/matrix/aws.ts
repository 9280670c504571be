/** The driver of AWS with its simulated cloud: two zones, spot instances where there is capacity for them. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { awsDriver } from '@nodepool/driver-aws';
import { KEY_NAME, REGION, startSimulatedAws, type AwsFault, type SimulatedAws } from '@nodepool/simulated-aws';
import type { CallFault } from '@nodepool/simulated-cloud';
import type { Timer } from '@nodepool/core';
import {
  ALL,
  BOOT_MS,
  common,
  DELETE_MS,
  LATENCY_MS,
  mainPool,
  nameOf,
  NO_LOGIN,
  type OpenTarget,
  type Target,
  type TargetOptions,
} from './target.js';

/** The zones of the subnets; the first one is disturbed. */
const ZONES = [`${REGION}a`, `${REGION}b`] as const;
/** Interval at which AWS takes the spot instances of a zone away (ms). */
const TAKE_AWAY_INTERVAL_MS = 10_000;
/** Codes of EC2 by status. */
const CODES: Readonly<Record<number, string>> = { 401: 'AuthFailure', 429: 'RequestLimitExceeded', 503: 'Unavailable' };

/** The target of the matrix. */
export const aws: OpenTarget = (options) => openAws(options, ZONES);

/** Opens a cloud whose pool has a subnet in each of these zones, in this order of preference. */
export async function openAws(
  { clock, random, label }: TargetOptions,
  zones: readonly string[],
): Promise<Target & { readonly cloud: SimulatedAws }> {
  const calmSettings = { pendingMs: BOOT_MS, shuttingDownMs: DELETE_MS, latencyMs: LATENCY_MS, throttles: true };
  const cloud = await startSimulatedAws({ clock, random, settings: calmSettings });
  const { faults } = cloud;
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-capacity-aws-'));
  const file = join(folder, 'credentials');
  const { accessKeyId, secretAccessKey } = cloud.credentials;
  await writeFile(file, `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`);
  const fail = (fault: CallFault, on = ALL): void => void faults.add({ on, fault: codedFault(fault), times: Infinity });
  const refuseLaunches = (status: number, code: string) => (): void =>
    void faults.add({
      on: 'ec2.RunInstances',
      times: Infinity,
      fault: { kind: 'status', status, code, message: code },
    });
  const shared = common(cloud, calmSettings);
  let timer: Timer | undefined;
  const takeZoneAway = (): void => {
    const [zone] = zones;
    for (const { id } of runningSpot(cloud).filter((each) => each.zone === zone)) cloud.interruptSpot(id);
    timer = clock.schedule(TAKE_AWAY_INTERVAL_MS, takeZoneAway);
  };
  return {
    cloud,
    driver: awsDriver({ AWS_SHARED_CREDENTIALS_FILE: file }),
    name: 'aws',
    section: {
      driver: 'aws',
      rate: 0,
      'region-name': REGION,
      'endpoint-url': cloud.url,
      'interruption-queue': cloud.queueUrl,
      'cloud-images': [{ name: 'amazon', username: 'ec2-user', 'image-id': cloud.publicImageId }],
      pools: [
        mainPool(
          {
            'cloud-image': 'amazon',
            'key-name': KEY_NAME,
            ...(label?.['instance-types'] === undefined ? { 'instance-type': 'm5.large' } : {}),
            'use-spot': 'prefer',
            ...label,
          },
          { ...NO_LOGIN, 'subnet-ids': zones.map((zone) => cloud.subnets[zone] ?? '') },
        ),
      ],
    },
    fail,
    refuseLogin: () => cloud.revokeCredentials(true),
    takeAway: (id) => cloud.interruptSpot(nameOf(id)),
    special: new Map([
      ['InsufficientInstanceCapacity', refuseLaunches(500, 'InsufficientInstanceCapacity')],
      ['VcpuLimitExceeded', refuseLaunches(400, 'VcpuLimitExceeded')],
      ['spot taken away in one zone', takeZoneAway],
    ]),
    ...shared,
    setBootTime: (pendingMs) => cloud.configure({ pendingMs }),
    calm: async () => {
      timer?.cancel();
      cloud.revokeCredentials(false);
      await shared.calm();
    },
    close: async () => {
      timer?.cancel();
      await shared.close();
      await rm(folder, { recursive: true });
    },
  };
}

function runningSpot({ inspect }: SimulatedAws): ReturnType<SimulatedAws['inspect']['instances']> {
  return inspect.instances().filter(({ market, state }) => market === 'spot' && state === 'running');
}

/** Returns the fault with the code that AWS sends with its status. */
function codedFault(fault: CallFault): AwsFault {
  return fault.kind === 'status' ? { ...fault, code: CODES[fault.status] ?? 'InternalError' } : fault;
}
