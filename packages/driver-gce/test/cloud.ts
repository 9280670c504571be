/** A simulated Google Cloud and helpers for the tests of this package. */

import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { sleep, systemClock, type JsonObject } from '@nodepool/core';
import {
  BUCKET,
  PROJECT,
  startSimulatedGce,
  type CloudCall,
  type CloudSettings,
  type SimulatedGce,
} from '@nodepool/simulated-gce';
import { simulatedTime, type TestTime } from '@nodepool/driver-kit';

export const ZONE = 'us-central1-a';
/** A zone of the same region that no pool uses by default. */
export const OTHER_ZONE = 'us-central1-f';

/** Grain of disks in tests, which is smaller than that of Compute Engine, because packing zeros takes long (bytes). */
export const DISK_GRAIN_BYTES = 2 ** 20;

const MAX_PAUSE_MS = 20_000;
const POLL_INTERVAL_MS = 5;

/** Returns a provider section with a pool `main`, a label `small` and the given keys, without endpoints. */
export function section(change: JsonObject = {}, label: JsonObject = {}, pool: JsonObject = {}): JsonObject {
  return {
    name: 'test',
    driver: 'gce',
    project: PROJECT,
    region: 'us-central1',
    zone: ZONE,
    rate: 0,
    'cloud-images': [
      { name: 'debian', 'image-project': 'debian-cloud', 'image-family': 'debian-12', username: 'zuul' },
    ],
    pools: [
      {
        name: 'main',
        labels: [{ name: 'small', 'cloud-image': 'debian', 'instance-type': 'e2-micro', ...label }],
        ...pool,
      },
    ],
    ...change,
  };
}

/** A provider section whose pool has two zones. */
export const twoZones = section({}, {}, { zones: ['us-central1-a', 'us-central1-b'] });

/** Returns a section with the endpoints of a cloud, and with its credentials unless the section names others. */
export function sectionFor({ url, credentialsFile }: SimulatedGce, used: JsonObject): JsonObject {
  return {
    'credentials-file': credentialsFile,
    ...used,
    'api-endpoint': url,
    'storage-endpoint': url,
    'storage-bucket': BUCKET,
  };
}

export interface OpenCloud {
  readonly time: TestTime;
  readonly cloud: SimulatedGce;
}

/**
 * Time whose pauses end immediately and whose deadlines never expire. For work such as compression, which simulated
 * time cannot observe.
 */
export function timeWithoutDeadlines(): TestTime {
  const clock = new VirtualClock();
  const isPause = (): boolean => (clock.nextDueAt ?? Infinity) - clock.monotonic() <= MAX_PAUSE_MS;
  return {
    clock,
    async until(condition) {
      while (!condition()) {
        await sleep(systemClock, POLL_INTERVAL_MS);
        if (isPause()) await clock.runNext();
      }
      return true;
    },
  };
}

/** Opens a simulated cloud on simulated time. */
export async function openCloud(
  settings: Partial<CloudSettings> = {},
  time: TestTime = simulatedTime(),
): Promise<OpenCloud> {
  return {
    time,
    cloud: await startSimulatedGce({
      clock: time.clock,
      random: seededRandom(1),
      settings: { diskGrainBytes: DISK_GRAIN_BYTES, ...settings },
    }),
  };
}

/** Creates foreign instances through the API. */
export async function addForeignInstances(cloud: SimulatedGce, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await addInstance(cloud, { name: `other-${index}` });
}

/** Creates an instance with the given fields through the API. */
export async function addInstance(cloud: SimulatedGce, fields: JsonObject): Promise<void> {
  const sourceImage = 'projects/debian-cloud/global/images/family/debian-12';
  const answer = await fetch(`${cloud.url}/compute/v1/projects/${PROJECT}/zones/${ZONE}/instances`, {
    method: 'POST',
    headers: { authorization: `Bearer ${cloud.token()}` },
    body: JSON.stringify({
      machineType: `zones/${ZONE}/machineTypes/e2-micro`,
      disks: [{ boot: true, initializeParams: { sourceImage } }],
      networkInterfaces: [{}],
      ...fields,
    }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}

/** Returns the paths, with parameters, of future calls of an operation. */
export function pathsOf(cloud: SimulatedGce, operation: string): readonly string[] {
  const paths: string[] = [];
  const note = (call: CloudCall): boolean => {
    if (call.operation === operation) paths.push(call.path);
    return false;
  };
  cloud.faults.add({ on: note, fault: { kind: 'hang', when: 'before' } });
  return paths;
}

/** Repeats a call of the driver, as a proxy does after a lost answer. */
export async function repeat(
  cloud: SimulatedGce,
  path: string | undefined,
  body: object,
): Promise<{ readonly status: number; readonly answer: unknown }> {
  const headers = { authorization: `Bearer ${cloud.token()}` };
  const answer = await fetch(`${cloud.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: answer.status, answer: await answer.json() };
}
