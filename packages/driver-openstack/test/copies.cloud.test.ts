/**
 * Resources that inherit our tags and belong to other people, on the simulated cloud and, with `pnpm test:openstack`,
 * on the real one.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExternalId, JsonObject, LaunchedInstance } from '@nodepool/core';
import {
  ApiClient,
  isRealOpenStackUnderTest,
  openStackUnderTest,
  textOf,
  type ApiAnswer,
  type OpenStackUnderTest,
} from '@nodepool/simulated-openstack';
import { callOn, failureOf, realTime, simulatedTime } from '@nodepool/driver-kit';
import { section, environmentOf } from './cloud.js';
import { TestProvider } from './provider.js';

jest.setTimeout(isRealOpenStackUnderTest() ? 400_000 : 60_000);

const PATCH = { 'Content-Type': 'application/openstack-images-v2.1-json-patch' };
const UNTIL_TIMEOUT_MS = 120_000;
const time = isRealOpenStackUnderTest() ? realTime() : simulatedTime();
let cloud: OpenStackUnderTest;
/** Another user of the project. */
let person: ApiClient;
let test: TestProvider;
let folder: string;
let file: string;

beforeAll(async () => {
  cloud = await openStackUnderTest({ clock: time.clock });
  person = await ApiClient.logIn(cloud.cloudsYaml, 'real');
  folder = mkdtempSync(join(tmpdir(), 'image-'));
  file = join(folder, 'image.raw');
  writeFileSync(file, 'data of an image');
});

beforeEach(async () => {
  const labels = [
    { name: 'small', diskimage: 'built', 'flavor-name': 'm1.tiny' },
    { name: 'on-volume', diskimage: 'built', 'flavor-name': 'm1.tiny', 'boot-from-volume': true, 'volume-size': 1 },
  ];
  const pools = [{ name: 'main', networks: ['private'], 'auto-floating-ip': false, labels }];
  const providerSection = section({ diskimages: [{ name: 'built' }], pools });
  test = await TestProvider.started({ time, environment: environmentOf(cloud) }, providerSection);
});

afterEach(async () => {
  await test.cleanUp(null);
  await test.stop();
  for (const snapshot of cloud.kind === 'real' ? await listed('volume', '/snapshots') : [])
    await person.delete('volume', `/snapshots/${textOf(snapshot['id'])}`);
  for (const { id } of await images()) await person.delete('image', `/images/${id}`);
  for (const volume of await listed('volume', '/volumes')) {
    const path = `/volumes/${textOf(volume['id'])}`;
    await until('volume', path, async ({ status }) => {
      if (status !== 404) await person.delete('volume', path);
      return status === 404;
    });
  }
  expect(test.failures).toEqual([]);
});

afterAll(async () => {
  await cloud.close();
  rmSync(folder, { recursive: true });
});

describe('images that nova creates from nodes', () => {
  it('survive the clean-up after the base image was retired, and the shelved node starts again', async () => {
    const base = await test.upload(file);
    const { externalId } = await launchFrom(base);
    await act(externalId, { createImage: { name: 'snapshot' } }, 'snapshot');
    await act(externalId, { createBackup: { name: 'backup', backup_type: 'daily', rotation: 1 } }, 'backup');
    await act(externalId, { shelve: null }, '*-shelved');
    const path = `/servers/${text(externalId)}`;
    await until('compute', path, (shown) => shown.member('server')['status'] === 'SHELVED_OFFLOADED');
    expect(await listedImages()).toEqual([base]);
    await retire(base);
    expect(await cleanedUp('image')).toEqual([]);
    expect((await images()).map(({ name }) => name.replace(/.*-shelved/, 'shelved')).sort()).toEqual([
      'backup',
      'shelved',
      'snapshot',
    ]);
    await person.post('compute', `${path}/action`, { unshelve: null });
    await until('compute', path, (shown) => shown.member('server')['status'] === 'ACTIVE');
  });

  it('survive if the node boots from a volume, so that they have no data and name no server', async () => {
    const base = await test.upload(file);
    const { externalId } = await launchFrom(base, 'on-volume');
    await act(externalId, { createImage: { name: 'of-volume' } }, 'of-volume');
    expect(await listedImages()).toEqual([base]);
    await retire(base);
    expect(await cleanedUp('image')).toEqual([]);
    expect((await images()).map(({ name }) => name)).toEqual(['of-volume']);
  });

  it('survive if another program uploaded the base image', async () => {
    const spec = { name: 'of-python', disk_format: 'raw', container_format: 'bare', ...test.imageTags };
    const base = textOf((await person.post('image', '/images', spec)).json()['id']);
    const headers = { 'Content-Type': 'application/octet-stream' };
    await person.call('image', 'PUT', `/images/${base}/file`, { headers, data: 'data' });
    const { externalId } = await launchFrom(base);
    await act(externalId, { createImage: { name: 'snapshot' } }, 'snapshot');
    expect(await listedImages()).toEqual([base]);
    expect(await cleanedUp('image')).toEqual([]);
    expect(await images()).toHaveLength(2);
  });
});

describe('a copy with all properties', () => {
  it.each([['an image'], ['a hidden image']])('of %s survives', async (what) => {
    const base = await test.upload(file);
    const [image] = await listed('image', `/images?owner=${person.projectId}`);
    const properties = Object.entries(image ?? {}).filter(([key]) => key.startsWith('nodepool_'));
    await person.post('image', '/images', {
      name: 'copy',
      disk_format: 'raw',
      container_format: 'bare',
      os_hidden: what === 'a hidden image',
      ...Object.fromEntries(properties),
    });
    expect(await listedImages()).toEqual([base]);
    expect(await cleanedUp('image')).toEqual([base]);
    expect((await images()).map(({ name }) => name)).toEqual(['copy']);
  });

  it('of a volume in use survives, as one that cinder restores from a backup', async () => {
    await launchFrom(await test.upload(file), 'on-volume');
    const [own] = await listed('volume', '/volumes/detail');
    const volume = { name: 'restored', size: 1, metadata: own?.['metadata'] };
    const id = textOf((await person.post('volume', '/volumes', { volume })).member('volume')['id']);
    await until('volume', `/volumes/${id}`, (shown) => shown.member('volume')['status'] === 'available');
    expect(await cleanedUp('volume')).toEqual([]);
    expect(await listed('volume', '/volumes')).toHaveLength(2);
  });
});

describe('hidden images', () => {
  it('are listed, and deleted if they are leaked', async () => {
    const hidden = await test.upload(file, { metadata: { os_hidden: 'true' } });
    expect(await listedImages()).toEqual([hidden]);
    expect(await cleanedUp('image')).toEqual([hidden]);
    expect(await images()).toEqual([]);
  });

  it('remain listed if an operator hides them while they are in service, and nodes can use them', async () => {
    const base = await test.upload(file);
    const data = JSON.stringify([{ op: 'replace', path: '/os_hidden', value: true }]);
    await person.call('image', 'PATCH', `/images/${text(base)}`, { headers: PATCH, data });
    expect(await listedImages()).toEqual([base]);
    await launchFrom(base);
  });

  it('are deleted after their upload has failed', async () => {
    const upload = test.upload(file, { md5: '0'.repeat(32), metadata: { os_hidden: 'true' } });
    expect((await failureOf(upload)).message).toContain('differs from the build');
    expect(await images()).toEqual([]);
  });
});

async function launchFrom(image: ExternalId, label = 'small'): Promise<LaunchedInstance> {
  const pool = test.config.pools.get('main');
  const chosen = pool?.labels.get(label);
  if (chosen === undefined) throw new Error(`there is no label ${label}`);
  return test.launch('0000000001', { label, imageExternalId: image });
}

/** Sends an action to a server and waits for the image that it creates. */
async function act(server: ExternalId, action: object, name: string): Promise<void> {
  const path = `/servers/${text(server)}`;
  await until('compute', path, (shown) => shown.member('server')['OS-EXT-STS:task_state'] === null);
  expect((await person.post('compute', `${path}/action`, action)).status).toBe(202);
  const isIt = (image: JsonObject): boolean =>
    image['status'] === 'active' && textOf(image['name']).endsWith(name.replace('*', ''));
  await until('image', `/images?owner=${person.projectId}`, (answer) => answer.list('images').some(isIt));
}

async function retire(image: ExternalId): Promise<void> {
  await test.end(test.provider.images!.deleteImage(image, callOn(time.clock)));
}

async function listedImages(): Promise<readonly ExternalId[]> {
  const list = await test.end(test.provider.images!.listImages(callOn(time.clock)));
  return list.map(({ externalId }) => externalId);
}

/** Runs a round in which all resources of a kind look leaked. Returns the ids of those that were offered. */
async function cleanedUp(kind: string): Promise<readonly ExternalId[]> {
  const offered = await test.cleanUpRound((resource) => resource.kind === kind);
  return offered.filter((resource) => resource.kind === kind).map(({ externalId }) => externalId);
}

/** Returns the images of the project, hidden ones included. */
async function images(): Promise<readonly { readonly id: string; readonly name: string }[]> {
  const lists = await Promise.all(
    ['false', 'true'].map((hidden) => listed('image', `/images?owner=${person.projectId}&os_hidden=${hidden}`)),
  );
  return lists.flat().map((image) => ({ id: textOf(image['id']), name: textOf(image['name']) }));
}

async function listed(service: 'image' | 'volume', path: string): Promise<readonly JsonObject[]> {
  const [, member = ''] = /^\/(\w+)/.exec(path) ?? [];
  return (await person.get(service, path)).list(member);
}

/** Repeats a call until its answer is as wanted. Advances the clock, which a simulated cloud needs. */
async function until(
  service: 'compute' | 'image' | 'volume',
  path: string,
  wanted: (answer: ApiAnswer) => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = time.clock.monotonic() + UNTIL_TIMEOUT_MS;
  while (!(await wanted(await person.get(service, path)))) {
    if (time.clock.monotonic() > deadline) throw new Error(`GET ${path} was not as wanted in ${UNTIL_TIMEOUT_MS} ms`);
    await time.until(() => false, 1000);
  }
}

function text(externalId: ExternalId): string {
  return typeof externalId === 'string' ? externalId : JSON.stringify(externalId);
}
