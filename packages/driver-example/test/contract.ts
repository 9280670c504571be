/** The contract fixtures: the example driver with a cloud in this process, and with one over HTTP. */

import { join } from 'node:path';
import { seededRandom } from '@nodepool/core/testing';
import type { ExternalId, JsonObject } from '@nodepool/core';
import {
  abilitiesExcept,
  simulatedTime,
  type CloudResource,
  type DriverFixture,
  type TestCloud,
} from '@nodepool/driver-kit';
import { ExampleAdapter } from '../src/adapter.js';
import { readCloudSettings } from '../src/cloud/settings-reader.js';
import type { ExampleProvider } from '../src/config.js';
import { exampleDriver } from '../src/index.js';
import { serveCloud } from '../src/server.js';
import { FaultyCloud } from './faulty-cloud.js';
import { instanceSpec } from './helpers.js';
import { section } from './provider.js';

/** A provider with a label of a cloud image and one of a built image. */
const used: JsonObject = section({
  diskimages: [{ name: 'built' }],
  pools: [
    {
      name: 'main',
      labels: [
        { name: 'small', 'cloud-image': 'debian', size: 'small' },
        { name: 'own', diskimage: 'built', size: 'small' },
        { name: 'either', 'cloud-image': 'debian', sizes: ['large', 'small'] },
      ],
    },
  ],
});

/** Every key of the schema, except `cloud`, which `endpoint` excludes, and the amounts, which `size` excludes. */
const everyKey: JsonObject = {
  name: 'all',
  driver: 'example',
  'max-concurrency': 5,
  priority: 10,
  'launch-retries': 2,
  'launch-timeout': 600,
  'boot-timeout': 30,
  rate: 10,
  'image-format': 'raw',
  'image-upload-timeout': 3600,
  'image-upload-idle-timeout': 900,
  'image-name-format': '{image_name}-{timestamp}',
  'post-upload-hook': '/bin/true',
  cloud: {
    'boot-time': [1, 2],
    'delete-time': 1,
    'api-latency': 0.1,
    'list-lag': 1,
    'rate-limit': 100,
    quota: { instances: 10, cores: 20, ram: -1 },
    zones: ['north', 'south'],
    sizes: [{ name: 'small', cores: 1, ram: 1024 }],
    'public-images': ['debian-12'],
    'page-size': 100,
    'reuse-ids': true,
    ssh: true,
    'authorized-keys': '/etc/nodepool/authorized_keys',
    faults: {
      'create-errors': 0.1,
      'lost-answers': 0.1,
      'failed-instances': 0.1,
      'stuck-instances': 0.1,
      'delete-errors': 0.1,
      'list-errors': 0.1,
      'upload-errors': 0.1,
      'capacity-errors': 0.1,
      'auth-errors': 0.1,
    },
  },
  diskimages: [
    {
      name: 'built',
      pause: false,
      'launch-test': { command: 'true', timeout: 60, identity: '/etc/nodepool/key' },
      canary: { share: '20%', nodes: 10, 'false-alarms': '1%' },
      meta: { a: 'b' },
      'connection-type': 'ssh',
      'connection-port': 22,
    },
  ],
  'cloud-images': [
    {
      name: 'debian',
      image: 'debian-12',
      username: 'zuul',
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
  ],
  pools: [
    {
      name: 'main',
      'max-servers': 10,
      'max-cores': 20,
      'max-ram': 4096,
      'availability-zones': ['north'],
      priority: 5,
      'node-attributes': { key: 'value' },
      'host-key-checking': true,
      'use-internal-ip': true,
      labels: [
        { name: 'small', 'cloud-image': 'debian', size: 'small', 'console-log': true, 'host-key-checking': true },
        { name: 'own', diskimage: 'built', cores: 2, ram: 2048 },
        { name: 'either', 'cloud-image': 'debian', sizes: ['large', 'small'] },
      ],
    },
  ],
};

const configuration: DriverFixture['configuration'] = {
  accepted: [everyKey, section({ endpoint: 'http://127.0.0.1:8480' })],
  refused: [
    {
      why: 'both an endpoint and a cloud',
      section: section({ endpoint: 'http://127.0.0.1:8480', cloud: {} }),
      at: ['cloud'],
    },
    { why: 'both a size and cores', section: section({}, { cores: 2 }), at: ['pools', 0, 'labels', 0, 'size'] },
    {
      why: 'a reversed range',
      section: section({ cloud: { 'boot-time': [3, 1] } }),
      at: ['cloud', 'boot-time'],
    },
  ],
};

const common: Omit<DriverFixture, 'name' | 'open'> = {
  packageFolder: join(__dirname, '..'),
  configuration,
  // The example cloud has no snapshots, backups or templates. There is no proxy before a cloud in this process; a test
  // of the HTTP client covers its answers. No call conflicts.
  can: abilitiesExcept(
    'image-times',
    'instance-copies',
    'image-copies',
    'secrets',
    'http',
    'replaced-credentials',
    'fault:any:echo',
    'fault:any:conflict',
    'fault:list:conflict',
    'fault:list:proxy-404',
    'fault:list:proxy-200',
    'fault:list:proxy-json',
    'fault:any:proxy-404',
    'fault:any:proxy-200',
    'fault:any:proxy-json',
  ),
};

/** The cloud in this process. */
export const inProcess: DriverFixture = {
  ...common,
  name: 'example',
  open: () => {
    const { cloud, rest } = openCloud();
    return { ...rest, makeAdapter: (config) => new ExampleAdapter(config as ExampleProvider, cloud) };
  },
};

/** The same cloud behind its HTTP API. */
export const overHttp: DriverFixture = {
  ...common,
  name: 'example, over HTTP',
  async open() {
    const { cloud, rest } = openCloud();
    const server = await serveCloud(cloud, { port: 0, address: '127.0.0.1' });
    return {
      ...rest,
      section: { ...used, endpoint: server.endpoint },
      site: { settings: { endpoint: server.endpoint } },
      makeDriver: () => exampleDriver(),
      makeAdapter: (config) => new ExampleAdapter(config as ExampleProvider, undefined),
      async close() {
        cloud.close();
        await server.stop();
      },
    };
  },
};

function openCloud(): { readonly cloud: FaultyCloud; readonly rest: TestCloud } {
  const time = simulatedTime();
  const settings = readCloudSettings({ 'page-size': 3, zones: ['north', 'south'], 'public-images': ['debian'] });
  const cloud = new FaultyCloud({ clock: time.clock, random: seededRandom(1), settings });
  const rest: TestCloud = {
    time,
    section: used,
    site: { settings: {} },
    makeDriver: () => exampleDriver({ cloud }),
    resources: () => resourcesOf(cloud),
    async addForeignInstances(count) {
      for (let made = 0; made < count; made += 1) await cloud.createInstance(instanceSpec({ name: `other-${made}` }));
    },
    setTimes: ({ bootMs, deleteMs }) =>
      cloud.configure({ bootTimeMs: [bootMs, bootMs], deleteTimeMs: [deleteMs, deleteMs] }),
    reuseIds: () => cloud.configure({ reusesIds: true }),
    setListLag: (ms) => cloud.configure({ listLagMs: [ms, ms] }),
    breakInstance: (id) => void cloud.breakInstance(text(id)),
    destroyInstance: (id) => void cloud.destroyInstance(text(id)),
    setQuota: ({ instances }) => cloud.configure({ quota: { instances, cores: Infinity, ram: Infinity } }),
    plan: (fault) => cloud.plan(fault),
    clearFaults: () => cloud.clearFaults(),
    imageLabel: { pool: 'main', label: 'own' },
    machineTypeLabel: { pool: 'main', label: 'either' },
    close: () => cloud.close(),
  };
  return { cloud, rest };
}

function resourcesOf(cloud: FaultyCloud): CloudResource[] {
  const instances = cloud.existingInstances().filter(({ tags }) => Object.keys(tags).length > 0);
  return instances.map(({ id, tags }) => ({ kind: 'instance', externalId: id, tags }));
}

function text(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new TypeError('ids of the example cloud are texts');
}
