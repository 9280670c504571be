/** The simulated cloud as its callers see it; the driver's tests call it through Google's library. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom, VirtualClock } from '@nodepool/core';
import { PROJECT, startSimulatedGce, type SimulatedGce } from '../src/index.js';
import { Definitions } from '../src/definitions.js';

const ZONE = `/compute/v1/projects/${PROJECT}/zones/us-central1-a`;
const UPLOAD = '/upload/storage/v1/b/acme-images/o';
const GRAIN = 256 * 1024;

let clock: VirtualClock;
let cloud: SimulatedGce;

beforeEach(async () => {
  clock = new VirtualClock();
  cloud = await startSimulatedGce({ clock, random: seededRandom(1), settings: { operationMs: 1000, pageSize: 2 } });
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

describe('a call', () => {
  it('without a good token is refused with 401', async () => {
    const { status } = await ask('GET', `${ZONE}/instances/none`, undefined, { authorization: 'Bearer nonsense' });
    expect(status).toBe(401);
  });

  it.each([
    ['a field that is not published', { colour: 'red' }, 'Instance.colour is not known'],
    ['a field of another type', { disks: [{ diskSizeGb: 10 }] }, 'Instance.disks[0].diskSizeGb is to be a string'],
    ['a label with a capital', { labels: { team: 'CI' } }, 'resource.labels'],
    ['a machine type that does not exist', { machineType: 'zones/us-central1-a/machineTypes/z9' }, 'machineType'],
  ])('with %s is refused with 400', async (_what, change, reason) => {
    const { status, body } = await ask('POST', `${ZONE}/instances`, instance('one', change));
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain(reason);
  });

  it('with a parameter that the method does not have is refused with 400', async () => {
    expect((await ask('POST', `${ZONE}/instances?requestID=1`, instance('one'))).status).toBe(400);
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
  it('that is sent again with its request id is done once', async () => {
    const path = `${ZONE}/instances?requestId=8c6f2f0e-2f0f-5a50-8b6e-111111111111`;
    const first = await ask('POST', path, instance('one'));
    const second = await ask('POST', path, instance('one'));
    expect(second.body['name']).toBe(first.body['name']);
    expect(cloud.inspect.instances()).toHaveLength(1);
  });

  it('is an operation that takes its time, and its instance a boot', async () => {
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
  it('has pages over all zones', async () => {
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

describe('an upload', () => {
  async function begin(): Promise<string> {
    const { headers } = await ask('POST', `${UPLOAD}?uploadType=resumable&name=nodepool/x`, { name: 'nodepool/x' });
    return headers.get('location') ?? '';
  }

  it('says how much it has, takes what comes again once, and ends with the size', async () => {
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

  it('refuses a piece of another length than a multiple of 256 KiB, unless it is the last', async () => {
    expect((await ask('PUT', await begin(), new Uint8Array(10), { 'content-range': 'bytes 0-9/*' })).status).toBe(400);
  });

  it('that is no disk becomes no image', async () => {
    const session = await begin();
    await ask('PUT', session, new Uint8Array(10), { 'content-range': 'bytes 0-9/10' });
    const rawDisk = { source: 'https://storage.googleapis.com/acme-images/nodepool/x' };
    const images = `/compute/v1/projects/${PROJECT}/global/images`;
    const { body } = await ask('POST', images, { name: 'broken', rawDisk });
    await clock.advance(1000);
    const operation = `/compute/v1/projects/${PROJECT}/global/operations/${String(body['name'])}`;
    expect(JSON.stringify((await ask('GET', operation)).body)).toContain('INVALID_IMAGE_FORMAT');
    expect(cloud.inspect.images()).toEqual([]);
  });
});

describe('the published definitions', () => {
  const definitions = new Definitions('@googleapis/compute/build/v1');

  it('have the paths that are served', () => {
    expect(definitions.hasPath('/compute/v1/projects/{project}/zones/{zone}/operations/{operation}/wait')).toBe(true);
    expect(definitions.hasPath('/compute/v1/projects/{project}/nothing')).toBe(false);
  });

  it('tell where a message is wrong', () => {
    const message = { name: 'one', disks: [{ boot: 'yes' }] };
    expect(definitions.problemWith(message, 'Instance')).toBe('Instance.disks[0].boot is to be a boolean, not "yes"');
    expect(definitions.problemWith({ name: 'one', disks: [{ boot: true }] }, 'Instance')).toBeUndefined();
  });
});
