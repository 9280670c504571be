/** The OpenStack driver by itself, on a simulated OpenStack or with `pnpm test:openstack` on the real one. */

import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  silentLogger,
  systemClock,
  systemRandom,
  TaskSupervisor,
  type Call,
  type ExternalId,
  type ImageManager,
  type InstanceTags,
  type JsonObject,
  type LaunchedInstance,
  type Provider,
} from '@nodepool/core';
import { openStackUnderTest, type OpenStackUnderTest } from '@nodepool/dev-openstack';
import { openStackDriver } from '@nodepool/driver-openstack';

/** The real services take their time. */
const TIMEOUT_MS = 240_000;

let cloud: OpenStackUnderTest;
let name: string;
let provider: Provider;
let nodes: number;
const failures: unknown[] = [];

beforeAll(async () => {
  cloud = await openStackUnderTest({ settings: { bootMs: 50 } });
});

afterAll(async () => {
  await cloud.close();
});

beforeEach(() => {
  name = `driver-${randomUUID()}`;
  nodes = 0;
});

afterEach(async () => {
  provider.stop();
  await provider.join();
  expect(failures.splice(0)).toEqual([]);
});

const call = (): Call => ({
  signal: new AbortController().signal,
  deadline: systemClock.monotonic() + TIMEOUT_MS,
  log: silentLogger,
});

/** Starts a provider of the cloud `real`, or another, with a pool `main` and a label `tiny`; `label`, `pool`: further keys. */
async function start(label: JsonObject = {}, pool: JsonObject = {}, cloudName = 'real'): Promise<void> {
  const surroundings = { env: { OS_CLIENT_CONFIG_FILE: cloud.cloudsYaml }, cwd: '/nowhere', home: '/nowhere' };
  const driver = openStackDriver({ ...surroundings, siteDirectories: [] });
  const tiny = { name: 'tiny', 'cloud-image': 'test-image', 'flavor-name': 'm1.tiny', networks: ['private'], ...label };
  const config = driver.getProviderConfig(
    {
      name,
      driver: 'openstack',
      cloud: cloudName,
      rate: 0.01,
      'cloud-images': [{ name: 'test-image' }],
      pools: [{ name: 'main', 'auto-floating-ip': false, labels: [tiny], ...pool }],
    },
    {
      diskImages: new Map(),
      labels: new Set(['tiny']),
      problem: (path, { expected }) => failures.push(`${path.join('.')}: expected ${expected}`),
    },
  );
  provider = driver.getProvider(config);
  await provider.start({
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    tasks: new TaskSupervisor(systemClock, (_task, error) => failures.push(error)),
    onApiCall: () => undefined,
  });
}

interface Launched {
  readonly nodeId: string;
  readonly tags: InstanceTags;
  readonly instance: Promise<LaunchedInstance>;
  /** What the driver has saved: the server's id, once it is known. */
  readonly saved: { externalId: ExternalId | null };
}

function launch(): Launched {
  nodes += 1;
  const nodeId = String(nodes).padStart(10, '0');
  const tags = {
    nodepool_node_id: nodeId,
    nodepool_provider_name: name,
    nodepool_pool_name: 'main',
    nodepool_launch_attempt: systemRandom.uuidHex(),
  };
  const request = { id: '200-0000000001', labels: ['tiny'], requestor: null, requestorData: null };
  const handler = provider.getRequestHandler('main', {
    ...request,
    relativePriority: 0,
    eventId: null,
    createdTime: null,
    tenantName: null,
  });
  const saved: Launched['saved'] = { externalId: null };
  const instance = handler.launch({
    ...call(),
    nodeId,
    tags,
    hostname: `np${nodeId}`,
    pool: 'main',
    label: 'tiny',
    availabilityZone: undefined,
    imageExternalId: undefined,
    saved: null,
    externalId: null,
    save: ({ externalId }) => {
      saved.externalId = externalId;
      return Promise.resolve();
    },
  });
  return { nodeId, tags, instance, saved };
}

/** Removes what there is of a node, known by its id in the cloud or by its tags only. */
async function cleanUp(nodeId: string, externalId: ExternalId | null): Promise<void> {
  const save = (): Promise<void> => Promise.resolve();
  await provider.cleanupNode({ ...call(), nodeId, pool: 'main', externalId, saved: null, save });
  await provider.waitForNodeCleanup(nodeId);
}

const ours = async (): Promise<readonly string[]> =>
  (await provider.listNodes(call()))
    .filter(({ tags, deleted }) => tags['nodepool_provider_name'] === name && !deleted)
    .map(({ tags }) => tags['nodepool_node_id'] ?? '');

function images(): ImageManager {
  if (provider.images === undefined) throw new Error('the driver has no images');
  return provider.images;
}

describe('the OpenStack driver', () => {
  it(
    'makes servers with addresses and tags, lists them, and removes them by id, or by their tags alone',
    async () => {
      await start();
      const [first, second] = [launch(), launch()];
      const [one, two] = await Promise.all([first.instance, second.instance]);

      expect(one.privateIpv4).toMatch(/^10\.10\./);
      expect(one.externalId).not.toEqual(two.externalId);
      const listed = (await provider.listNodes(call())).find(({ externalId }) => externalId === one.externalId);
      expect(listed).toMatchObject({ ready: true, deleted: false, tags: first.tags });
      await Promise.all([cleanUp(first.nodeId, one.externalId), cleanUp(second.nodeId, null)]);
      expect(await ours()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'gives a server a floating IP and a volume, and removes them with it',
    async () => {
      await start({ 'boot-from-volume': true, 'volume-size': 1 }, { 'auto-floating-ip': true });
      const { nodeId, instance } = launch();
      const { externalId, publicIpv4, interfaceIp } = await instance;

      expect(publicIpv4).toMatch(/^172\.24\./);
      expect(interfaceIp).toBe(publicIpv4);
      await cleanUp(nodeId, externalId);
      expect(await ours()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it.each([
    ['no host can hold it', { 'flavor-name': 'm1.nohost' }, 'capacity', 'No valid host was found'],
    ['its host fails', { 'instance-properties': { ostack_fail: 'spawn' } }, 'instance-failed', 'ostack_fail=spawn'],
  ] as const)(
    'says why a server cannot be when %s, and removes it',
    async (_why, label, code, message) => {
      await start(label);
      const { nodeId, instance, saved } = launch();

      await expect(instance).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
      await cleanUp(nodeId, saved.externalId);
      expect(await ours()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'removes a server whose first deletion fails',
    async () => {
      await start({ 'instance-properties': { ostack_fail: 'delete' } });
      const { nodeId, instance } = launch();
      await cleanUp(nodeId, (await instance).externalId);

      expect(await ours()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    'knows the limits of a project',
    async () => {
      await start({}, {}, 'limited');
      const limits = await provider.getQuotaLimits?.(call());

      expect(limits?.toResources()).toMatchObject({ instances: 3, cores: 3, ram: 4096 });
    },
    TIMEOUT_MS,
  );

  it(
    'uploads an image with its tags and properties, lists it, and deletes it, also twice',
    async () => {
      await start();
      const folder = mkdtempSync(join(tmpdir(), 'driver-openstack-'));
      try {
        const file = join(folder, 'image.raw');
        const data = Buffer.alloc(3_000_000, 'nodepool');
        writeFileSync(file, data);
        const tags = { nodepool_build_id: 'b1', nodepool_upload_id: '0000000001', nodepool_provider_name: name };
        const id = await images().uploadImage({
          ...call(),
          image: 'case',
          externalName: `case-${name}`,
          file,
          format: 'raw',
          md5: createHash('md5').update(data).digest('hex'),
          sha256: null,
          metadata: { hw_disk_bus: 'scsi' },
          tags,
          progress: () => undefined,
        });

        const listed = (await images().listImages(call())).find(({ externalId }) => externalId === id);
        expect(listed).toMatchObject({ name: `case-${name}`, ready: true, tags });
        await images().deleteImage(id, call());
        await images().deleteImage(id, call());
        const left = (await images().listImages(call())).filter(({ tags }) => tags['nodepool_provider_name'] === name);
        expect(left).toEqual([]);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
    TIMEOUT_MS,
  );
});
