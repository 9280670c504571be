/** The contract fixture: this driver on a simulated Google Cloud. */

import { join } from 'node:path';
import type { ExternalId, JsonObject } from '@nodepool/core';
import { httpControls, PROJECT, type FaultRule, type SimulatedGce } from '@nodepool/simulated-gce';
import {
  abilitiesExcept,
  type CloudResource,
  type DriverFixture,
  type PlannedFault,
  type TestCloud,
} from '@nodepool/driver-kit';
import { gceDriver } from '../src/driver.js';
import { tagsInLabels } from '../src/labels.js';
import { addForeignInstances, DISK_GRAIN_BYTES, openCloud, section, sectionFor, ZONE } from './cloud.js';

const used: JsonObject = section({
  diskimages: [{ name: 'built' }],
  pools: [
    {
      name: 'main',
      zones: ['us-central1-a', 'us-central1-b'],
      labels: [
        { name: 'small', 'cloud-image': 'debian', 'instance-type': 'e2-micro' },
        { name: 'own', diskimage: 'built', 'instance-type': 'e2-micro' },
        { name: 'either', 'cloud-image': 'debian', 'instance-types': ['e2-standard-2', 'e2-micro'] },
      ],
    },
  ],
});

/** Every key of the schema, except `image-family`, which `image-id` excludes. `rate` overrides `rate-limit`. */
const everyKey: JsonObject = {
  name: 'all',
  driver: 'gce',
  project: 'acme',
  region: 'us-central1',
  zone: 'us-central1-a',
  'credentials-file': '/etc/nodepool/gce.json',
  'api-endpoint': 'https://compute.example.org',
  'storage-endpoint': 'https://storage.example.org/',
  'storage-bucket': 'images',
  'max-concurrency': 5,
  priority: 10,
  'launch-retries': 2,
  'launch-timeout': 600,
  'boot-timeout': 30,
  rate: 5,
  'rate-limit': 4,
  'image-upload-timeout': 3600,
  'image-upload-idle-timeout': 900,
  'image-name-format': '{image_name}-{timestamp}',
  'post-upload-hook': '/bin/true',
  diskimages: [
    {
      name: 'built',
      pause: false,
      'launch-test': { command: 'true', timeout: 60, identity: '/etc/nodepool/key' },
      canary: { share: '20%', nodes: 10, 'false-alarms': '1%' },
      meta: { team: 'ci' },
      architecture: 'arm64',
      'guest-os-features': ['UEFI_COMPATIBLE'],
      username: 'zuul',
      key: 'ssh-ed25519 AAAA zuul',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
  ],
  'cloud-images': [
    {
      name: 'by-family',
      'image-project': 'debian-cloud',
      'image-family': 'debian-12',
      username: 'zuul',
      key: 'ssh-ed25519 AAAA zuul',
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
    { name: 'by-id', 'image-id': 'projects/debian-cloud/global/images/debian-12-bookworm-v20240213' },
  ],
  pools: [
    {
      name: 'main',
      'max-servers': 10,
      'max-cores': 20,
      'max-ram': 4096,
      zones: ['us-central1-a', 'us-central1-f'],
      network: 'ci',
      subnetwork: 'ci-central',
      'provisioning-model': 'standard',
      'service-account': 'nodes@acme.iam.gserviceaccount.com',
      preemptible: false,
      priority: 5,
      'node-attributes': { key: 'value' },
      'host-key-checking': true,
      'use-internal-ip': true,
      'public-ipv4': false,
      labels: [
        {
          name: 'small',
          'cloud-image': 'by-family',
          'instance-type': 'e2-micro',
          'volume-type': 'pd-ssd',
          'volume-size': 20,
          'console-log': true,
          'host-key-checking': true,
          'service-account': 'others@acme.iam.gserviceaccount.com',
          preemptible: true,
          'provisioning-model': 'spot',
          accelerators: [{ type: 'nvidia-tesla-t4', count: 1 }],
          labels: { team: 'ci' },
        },
        { name: 'own', diskimage: 'built', 'instance-type': 'e2-micro' },
        { name: 'either', 'cloud-image': 'by-id', 'instance-types': ['e2-standard-2', 'e2-micro'] },
      ],
    },
  ],
};

const configuration: DriverFixture['configuration'] = {
  accepted: [everyKey],
  refused: [
    { why: 'a zone of another region', section: section({ zone: 'europe-west1-b' }), at: ['zone'] },
    {
      why: 'a zone of another region in a pool',
      section: section({}, {}, { zones: ['us-central1-a', 'europe-west1-b'] }),
      at: ['pools', 0, 'zones', 1],
    },
    { why: 'disk images without a bucket', section: section({ diskimages: [{ name: 'built' }] }), at: ['diskimages'] },
    { why: 'a name that is too long for a label', section: section({ name: 'É'.repeat(20) }), at: ['name'] },
    {
      why: 'a pool name that is too long for a label',
      section: section({}, {}, { name: 'x'.repeat(64) }),
      at: ['pools', 0, 'name'],
    },
  ],
};

/** The driver on a simulated cloud. */
export const simulated: DriverFixture = {
  name: 'gce',
  packageFolder: join(__dirname, '..'),
  configuration,
  can: abilitiesExcept('adapter', 'reused-ids'),
  async open(): Promise<TestCloud> {
    const { cloud, time } = await openCloud({ pageSize: 3 });
    return {
      time,
      section: sectionFor(cloud, used),
      site: {
        settings: {
          ...{ project: PROJECT, region: 'us-central1', key: 'ssh-ed25519 AAAAC3Nz zuul' },
          'credentials-file': cloud.credentialsFile,
        },
        keys: { rate: 0, 'api-endpoint': cloud.url, 'storage-endpoint': cloud.url },
      },
      makeDriver: () => gceDriver(DISK_GRAIN_BYTES),
      resources: () => resourcesOf(cloud),
      addForeignInstances: (count) => addForeignInstances(cloud, count),
      setTimes: (times) => cloud.configure(times),
      setImageTime: (ms) => cloud.configure({ operationMs: ms }),
      setListLag: (ms) => cloud.configure({ listLagMs: ms }),
      breakInstance: (id) => void cloud.stopInstance(...place(id), 'the host broke down'),
      destroyInstance: (id) => void cloud.removeInstance(...place(id)),
      copyInstance: (id) => {
        const [zone, name] = place(id);
        cloud.copy.instance(zone, name, `copy-of-${name}`);
        return () => cloud.inspect.instances().some((instance) => instance.name === `copy-of-${name}`);
      },
      copyImage: (id) => {
        cloud.copy.image(place(id)[1], 'copy');
        return () => cloud.inspect.images().some(({ name }) => name === 'copy');
      },
      setQuota: ({ instances }) => cloud.setLimits({ INSTANCES: instances }),
      plan: (fault) => plan(cloud, fault),
      secrets: () => [...cloud.calls.credentials],
      http: httpControls({
        ...cloud,
        clock: time.clock,
        any: OPERATIONS.any,
        create: OPERATIONS.create,
        throttled: { kind: 'status', status: 429, reason: 'rateLimitExceeded' },
      }),
      async replaceCredentials() {
        cloud.revokeCredentials();
        await cloud.writeCredentials();
      },
      clearFaults: () => cloud.faults.clear(),
      imageLabel: { pool: 'main', label: 'own' },
      machineTypeLabel: { pool: 'main', label: 'either' },
      close: () => cloud.close(),
    };
  },
};

const OPERATIONS: Readonly<Record<PlannedFault['operation'], FaultRule['on']>> = {
  any: '*',
  create: 'instances.insert',
  delete: 'instances.delete',
  list: 'instances.list',
  upload: 'images.insert',
};

const FAULTS: Readonly<Record<PlannedFault['kind'], FaultRule['fault']>> = {
  refuse: { kind: 'status', status: 500 },
  'fail-after': { kind: 'status', status: 500, when: 'after' },
  'lose-answer': { kind: 'cut', when: 'after' },
  hang: { kind: 'hang', when: 'before' },
  echo: { kind: 'proxy', status: 502, echo: true },
  'proxy-404': { kind: 'proxy', status: 404 },
  'proxy-200': { kind: 'proxy', status: 200 },
  'proxy-json': { kind: 'proxy', status: 200, json: { message: 'sign in' } },
  throttle: { kind: 'status', status: 403, reason: 'rateLimitExceeded' },
  auth: { kind: 'status', status: 401, reason: 'authError' },
  conflict: { kind: 'status', status: 409, reason: 'resourceNotReady' },
  'not-found': { kind: 'status', status: 404, reason: 'notFound' },
  quota: {
    kind: 'operation-error',
    code: 'QUOTA_EXCEEDED',
    message: "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.",
  },
  capacity: {
    kind: 'operation-error',
    code: 'ZONE_RESOURCE_POOL_EXHAUSTED',
    message: 'The zone does not have enough resources available to fulfill the request.',
  },
  invalid: { kind: 'status', status: 400, reason: 'invalid', message: "Invalid value for field 'resource.disks'" },
};

function plan(cloud: SimulatedGce, { operation, kind, skip }: PlannedFault): void {
  // The driver repeats the creation of an image after a temporary failure, and a call with a new token once.
  const times = operation === 'upload' && kind === 'refuse' ? Infinity : kind === 'auth' ? 2 : 1;
  cloud.faults.add({ on: OPERATIONS[operation], after: skip, times, fault: FAULTS[kind] });
}

function resourcesOf({ inspect }: SimulatedGce): CloudResource[] {
  const instances = inspect.instances().filter(({ labels }) => 'nodepool_node_id' in labels);
  const objects = inspect.objects();
  return [
    ...instances.map(({ zone, name, labels }) => ({
      kind: 'instance',
      externalId: zone === ZONE ? name : `${zone}/${name}`,
      tags: tagsInLabels(labels),
    })),
    ...inspect.images().map(({ name, labels }) => ({ kind: 'image', externalId: name, tags: tagsInLabels(labels) })),
    ...objects.map(({ name, metadata }) => ({ kind: 'object', externalId: name, tags: metadata })),
  ];
}

function place(externalId: ExternalId): readonly [zone: string, name: string] {
  const [zone = '', name] = typeof externalId === 'string' ? externalId.split('/') : [];
  return name === undefined ? [ZONE, zone] : [zone, name];
}
