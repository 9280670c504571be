/** The simulated cloud as HTTP callers see it. The driver's tests use Google's library. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT, startSimulatedGce, type SimulatedGce } from '../src/index.js';
import { Definitions } from '../src/definitions.js';

const ZONE = `/compute/v1/projects/${PROJECT}/zones/us-central1-a`;
const UPLOAD = '/upload/storage/v1/b/acme-images/o';
const GRAIN = 256 * 1024;
const DISK_BYTES = 2 ** 20;

let clock: VirtualClock;
let cloud: SimulatedGce;

beforeEach(async () => {
  clock = new VirtualClock();
  const settings = { operationMs: 1000, pageSize: 2, diskGrainBytes: DISK_BYTES };
  cloud = await startSimulatedGce({ clock, random: seededRandom(1), settings });
});

afterEach(() => cloud.close());

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
}

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await fetch(path.startsWith('http') ? path : cloud.url + path, {
    method,
    headers: { authorization: `Bearer ${cloud.token()}`, ...headers },
    redirect: 'manual',
    ...(body === undefined ? {} : { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  const parsed = text === '' ? {} : (JSON.parse(text) as Answer['body']);
  return { status: answer.status, body: parsed, headers: answer.headers };
}

function instance(name: string, change: object = {}): object {
  return {
    name,
    machineType: 'zones/us-central1-a/machineTypes/e2-micro',
    disks: [{ boot: true, initializeParams: { sourceImage: 'projects/debian-cloud/global/images/family/debian-12' } }],
    networkInterfaces: [{}],
    ...change,
  };
}

const IMAGE = 'projects/debian-cloud/global/images/family/debian-12';
const WINDOWS = 'projects/windows-cloud/global/images/family/windows-2022';
const disk = (parameters: object): object => ({
  disks: [{ boot: true, initializeParams: { sourceImage: IMAGE, ...parameters } }],
});
const nic = (change: object): object => ({ networkInterfaces: [change] });
const metadata = (...items: object[]): object => ({ metadata: { items } });

describe('a call', () => {
  it('without a valid token is refused with 401', async () => {
    const { status } = await ask('GET', `${ZONE}/instances/none`, undefined, { authorization: 'Bearer nonsense' });
    expect(status).toBe(401);
  });

  it.each([
    ['an unpublished field', { colour: 'red' }, 'must NOT have additional properties: colour'],
    ['a field of another type', { disks: [{ diskSizeGb: 10 }] }, 'disks/0/diskSizeGb must be string'],
    ['a value that is not in an enumeration', { scheduling: { onHostMaintenance: 'STAY' } }, 'MIGRATE,TERMINATE'],
    ['a number that is not an int64', disk({ diskSizeGb: 'ten' }), 'diskSizeGb'],
    ['a label with an uppercase letter', { labels: { team: 'CI' } }, 'resource.labels'],
    ['a machine type that does not exist', { machineType: 'zones/us-central1-a/machineTypes/z9' }, 'machineType'],
    ['a machine type of another zone', { machineType: 'zones/us-central1-b/machineTypes/e2-micro' }, 'us-central1-a'],
    ['a bare machine type', { machineType: 'e2-micro' }, 'The URL is malformed'],
    ['a disk type of another zone', disk({ diskType: 'zones/us-central1-b/diskTypes/pd-ssd' }), 'us-central1-a'],
    ['a disk type that does not exist', disk({ diskType: 'zones/us-central1-a/diskTypes/pd-fast' }), 'pd-fast'],
    ['a disk that is smaller than its image', disk({ sourceImage: WINDOWS, diskSizeGb: '20' }), '(50 GB)'],
    ['a subnetwork of another region', nic({ subnetwork: 'regions/europe-west1/subnetworks/ci' }), 'us-central1'],
    ['a subnetwork that does not exist', nic({ subnetwork: 'regions/us-central1/subnetworks/x' }), 'cannot be found'],
    [
      'the default network beside the subnetwork of another',
      nic({ network: 'global/networks/default', subnetwork: 'projects/host/regions/us-central1/subnetworks/shared' }),
      'is not in network',
    ],
    ['a metadata key with a dot', metadata({ key: 'user.data', value: '' }), 'metadata/items/0/key'],
    ['a metadata key twice', metadata({ key: 'a', value: '' }, { key: 'a', value: '' }), 'metadata.items.key'],
    ['too much metadata', metadata({ key: 'a', value: 'x'.repeat(300_000) }), 'metadata'],
    [
      'preemption and automatic restart',
      { scheduling: { preemptible: true, automaticRestart: true } },
      'AutomaticRestart',
    ],
    [
      'preemption and migration',
      { scheduling: { provisioningModel: 'SPOT', onHostMaintenance: 'MIGRATE' } },
      'MIGRATE',
    ],
    [
      'a termination action without SPOT',
      { scheduling: { instanceTerminationAction: 'DELETE' } },
      'termination action',
    ],
    [
      'an accelerator with migration',
      {
        guestAccelerators: [{ acceleratorType: 'zones/us-central1-a/acceleratorTypes/nvidia-l4', acceleratorCount: 1 }],
      },
      'live migration',
    ],
  ])('with %s is refused with 400', async (_what, change, reason) => {
    const { status, body } = await ask('POST', `${ZONE}/instances`, instance('one', change));
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain(reason);
  });

  it.each([
    ['that is unknown to the method', '?requestID=1'],
    ['that is given twice', '?prettyPrint=true&prettyPrint=false'],
    ['of another type', '?prettyPrint=perhaps'],
    ['requestId that is not a UUID', '?requestId=one'],
    ['requestId that is zero', '?requestId=00000000-0000-0000-0000-000000000000'],
  ])('with a parameter %s is refused with 400', async (_what, query) => {
    expect((await ask('POST', `${ZONE}/instances${query}`, instance('one'))).status).toBe(400);
    expect(cloud.inspect.instances()).toEqual([]);
  });

  it('with a subnetwork of a shared VPC and no network is accepted', async () => {
    const change = nic({ subnetwork: 'projects/host/regions/us-central1/subnetworks/shared' });
    expect((await ask('POST', `${ZONE}/instances`, instance('one', change))).status).toBe(200);
  });

  it('beyond the rate is refused with 403 until a second has passed', async () => {
    cloud.configure({ callsPerSecond: 2 });
    const calls = async (): Promise<number[]> => {
      const answers = [];
      for (let index = 0; index < 3; index += 1) answers.push(await ask('GET', `${ZONE}/instances/none`));
      return answers.map(({ status }) => status);
    };
    expect(await calls()).toEqual([404, 404, 403]);
    await clock.advance(1000);
    expect(await calls()).toEqual([404, 404, 403]);
  });
});

describe('an insertion', () => {
  it('takes effect once if it is sent twice with one request id', async () => {
    const path = `${ZONE}/instances?requestId=8c6f2f0e-2f0f-5a50-8b6e-111111111111`;
    const first = await ask('POST', path, instance('one'));
    const second = await ask('POST', path, instance('one'));
    expect(second.body['name']).toBe(first.body['name']);
    expect(cloud.inspect.instances()).toHaveLength(1);
  });

  it('creates an operation, and an instance that boots', async () => {
    cloud.configure({ bootMs: 5000 });
    const { body } = await ask('POST', `${ZONE}/instances`, instance('one'));
    expect(body['status']).toBe('RUNNING');
    await clock.advance(1000);
    expect((await ask('GET', `${ZONE}/operations/${String(body['name'])}`)).body['status']).toBe('DONE');
    expect((await ask('GET', `${ZONE}/instances/one`)).body['status']).toBe('PROVISIONING');
    await clock.advance(4000);
    expect((await ask('GET', `${ZONE}/instances/one`)).body['status']).toBe('RUNNING');
  });
});

describe('a list', () => {
  const namesIn = ({ body }: Answer): unknown[] => (body['items'] as { name: string }[]).map(({ name }) => name);

  it('contains the entries that match its filter', async () => {
    cloud.configure({ pageSize: 500 });
    for (const [name, team] of [
      ['one', 'a'],
      ['two', 'b'],
    ] as const) {
      await ask('POST', `${ZONE}/instances`, instance(name, { labels: { team } }));
    }
    const filtered = (filter: string): Promise<Answer> =>
      ask('GET', `${ZONE}/instances?filter=${encodeURIComponent(filter)}`);
    expect(namesIn(await filtered('labels.team = b'))).toEqual(['two']);
    expect(namesIn(await filtered('(labels.team != "b") AND (status = PROVISIONING)'))).toEqual(['one']);
    expect(namesIn(await filtered('name eq t.*'))).toEqual(['two']);
    expect((await filtered('labels.team = a OR labels.team = b')).status).toBe(400);
  });

  it.each(['zones', 'regions', 'global/images', 'zones/us-central1-a/machineTypes', 'zones/us-central1-a/disks'])(
    'of %s agrees with the published definition',
    async (collection) => {
      await ask('POST', `${ZONE}/instances`, instance('one'));
      expect((await ask('GET', `/compute/v1/projects/${PROJECT}/${collection}`)).status).toBe(200);
    },
  );

  it('refuses pages of more than 500 entries', async () => {
    expect((await ask('GET', `${ZONE}/instances?maxResults=501`)).status).toBe(400);
  });

  it('of all zones has pages', async () => {
    for (const name of ['one', 'two', 'three']) await ask('POST', `${ZONE}/instances`, instance(name));
    const path = `/compute/v1/projects/${PROJECT}/aggregated/instances`;
    const first = await ask('GET', path);
    expect(first.body['nextPageToken']).toBe('2');
    const second = await ask('GET', `${path}?pageToken=2`);
    expect(second.body).not.toHaveProperty('nextPageToken');
    expect(JSON.stringify(first.body)).not.toContain('"three"');
    expect(JSON.stringify(second.body)).toContain('"three"');
  });
});

describe('a disk', () => {
  it.each([
    ['is deleted with its instance', true, []],
    ['is not deleted with its instance without autoDelete', false, ['one']],
  ])('%s', async (_what, autoDelete, left) => {
    const disks = [{ boot: true, autoDelete, initializeParams: { sourceImage: IMAGE } }];
    await ask('POST', `${ZONE}/instances`, instance('one', { disks }));
    await ask('DELETE', `${ZONE}/instances/one`);
    const { body } = await ask('GET', `${ZONE}/disks`);
    const { items = [] } = body as { items?: { name: string }[] };
    expect(items.map(({ name }) => name)).toEqual(left);
  });
});

describe('an image', () => {
  it('of a family is the newest one', async () => {
    const path = '/compute/v1/projects/debian-cloud/global/images/family/debian-12';
    expect((await ask('GET', path)).body['name']).toBe('debian-12-bookworm-v20240213');
  });

  it('is created once by two concurrent insertions', async () => {
    const archive = gzippedDisk();
    const { headers } = await ask('POST', `${UPLOAD}?uploadType=resumable&name=disk`, { name: 'disk' });
    const range = { 'content-range': `bytes 0-${archive.byteLength - 1}/${archive.byteLength}` };
    await ask('PUT', headers.get('location') ?? '', archive, range);
    const body = { name: 'image', rawDisk: { source: 'https://storage.googleapis.com/acme-images/disk' } };
    const path = `/compute/v1/projects/${PROJECT}/global/images`;
    const answers = await Promise.all([ask('POST', path, body), ask('POST', path, body)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect(cloud.inspect.images()).toHaveLength(1);
  });
});

/** Returns a disk in an archive for Compute Engine, packed by GNU tar. */
function gzippedDisk(bytes = DISK_BYTES): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'disk-'));
  writeFileSync(join(folder, 'disk.raw'), Buffer.alloc(bytes));
  const archive = execFileSync('tar', ['--format=oldgnu', '-C', folder, '-cz', 'disk.raw']);
  rmSync(folder, { recursive: true });
  return archive;
}

describe('an upload', () => {
  async function begin(): Promise<string> {
    const { headers } = await ask('POST', `${UPLOAD}?uploadType=resumable&name=nodepool/x`, { name: 'nodepool/x' });
    return headers.get('location') ?? '';
  }

  it('reports the received bytes, ignores repeated ones, and ends with the size', async () => {
    const session = await begin();
    const piece = new Uint8Array(GRAIN);
    const range = { 'content-range': `bytes 0-${GRAIN - 1}/*` };
    for (const attempt of [1, 2]) {
      const { status, headers } = await ask('PUT', session, piece, range);
      expect([attempt, status, headers.get('range')]).toEqual([attempt, 308, `bytes=0-${GRAIN - 1}`]);
    }
    const last = { 'content-range': `bytes ${GRAIN}-${GRAIN + 9}/${GRAIN + 10}` };
    const { status, body } = await ask('PUT', session, new Uint8Array(10), last);
    expect([status, body['size']]).toEqual([200, String(GRAIN + 10)]);
  });

  it('refuses a piece whose length is not a multiple of 256 KiB, unless it is the last', async () => {
    expect((await ask('PUT', await begin(), new Uint8Array(10), { 'content-range': 'bytes 0-9/*' })).status).toBe(400);
  });

  it.each([
    ['that is no archive', () => new Uint8Array(10), 'INVALID_IMAGE_FORMAT'],
    ['of a disk with a part of a GiB', () => gzippedDisk(DISK_BYTES + 512), 'is not a multiple of'],
  ])('%s does not become an image', async (_what, content, reason) => {
    const [session, data] = [await begin(), content()];
    await ask('PUT', session, data, { 'content-range': `bytes 0-${data.length - 1}/${data.length}` });
    const rawDisk = { source: 'https://storage.googleapis.com/acme-images/nodepool/x' };
    const images = `/compute/v1/projects/${PROJECT}/global/images`;
    const { body } = await ask('POST', images, { name: 'broken', rawDisk });
    await clock.advance(1000);
    const operation = `/compute/v1/projects/${PROJECT}/global/operations/${String(body['name'])}`;
    expect(JSON.stringify((await ask('GET', operation)).body)).toContain(reason);
    expect(cloud.inspect.images()).toEqual([]);
  });
});

describe('the published definitions', () => {
  const definitions = new Definitions('compute');

  it('contain the served methods', () => {
    const path = '/compute/v1/projects/{project}/zones/{zone}/operations/{operation}/wait';
    expect(definitions.method('zoneOperations.wait')).toMatchObject({ httpMethod: 'POST', path });
    expect(() => definitions.method('instances.explode')).toThrow('not in the published definitions');
  });

  it('report the position of an invalid value', () => {
    const message = { name: 'one', disks: [{ boot: 'yes' }] };
    expect(definitions.problemWith(message, 'Instance')).toBe('disks/0/boot must be boolean');
    expect(definitions.problemWith({ name: 'one', disks: [{ boot: true }] }, 'Instance')).toBeUndefined();
  });
});
