/** The contract fixture: this driver on a simulated OpenStack. */

import { join } from 'node:path';
import type { ExternalId, JsonObject } from '@nodepool/core';
import { httpControls, TestBed, textOf, type FaultRule, type SimulatedOpenStack } from '@nodepool/simulated-openstack';
import {
  abilitiesExcept,
  type CloudResource,
  type DriverFixture,
  type PlannedFault,
  type TestCloud,
} from '@nodepool/driver-kit';
import { OpenStackAdapter, openStackDriver, type OpenStackProvider } from '../src/index.js';
import { addForeignServers, openCloud, section, type OpenCloud } from './cloud.js';

const used: JsonObject = section({
  diskimages: [{ name: 'built' }],
  pools: [
    {
      name: 'main',
      networks: ['private'],
      labels: [
        { name: 'small', 'cloud-image': 'test-image', 'flavor-name': 'm1.tiny' },
        { name: 'own', diskimage: 'built', 'flavor-name': 'm1.tiny' },
        { name: 'either', 'cloud-image': 'test-image', 'flavor-names': ['m1.small', 'm1.tiny'] },
      ],
    },
  ],
});

/** Every key of the schema, except `image-name`, which `image-id` excludes. */
const everyKey: JsonObject = {
  name: 'all',
  driver: 'openstack',
  cloud: 'real',
  'region-name': 'RegionOne',
  'max-concurrency': 5,
  priority: 10,
  'launch-retries': 2,
  'launch-timeout': 600,
  'boot-timeout': 30,
  rate: 0.1,
  'image-upload-timeout': 3600,
  'image-upload-idle-timeout': 900,
  'image-name-format': '{image_name}-{timestamp}',
  'post-upload-hook': '/bin/true',
  'clean-floating-ips': true,
  'port-cleanup-interval': 600,
  'nodepool-id': 'old',
  diskimages: [
    {
      name: 'built',
      pause: false,
      'launch-test': { command: 'true', timeout: 60, identity: '/etc/nodepool/key' },
      canary: { share: '20%', nodes: 10, 'false-alarms': '1%' },
      meta: { hw_disk_bus: 'scsi', min_disk: 10, hidden: false },
      'config-drive': true,
      'connection-type': 'ssh',
      'connection-port': 22,
    },
  ],
  'cloud-images': [
    {
      name: 'by-name',
      'image-name': 'Debian 12',
      'config-drive': false,
      username: 'zuul',
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
    { name: 'by-id', 'image-id': '24c0c5e3-bfae-42ce-8058-fe3e74949493' },
  ],
  pools: [
    {
      name: 'main',
      'max-servers': 10,
      'max-cores': 20,
      'max-ram': 4096,
      'max-volumes': 5,
      'max-volume-gb': 500,
      'ignore-provider-quota': true,
      'availability-zones': ['nova'],
      networks: ['private'],
      'security-groups': ['default'],
      'auto-floating-ip': true,
      priority: 5,
      'node-attributes': { key: 'value' },
      'host-key-checking': true,
      'use-internal-ip': true,
      labels: [
        {
          name: 'small',
          'cloud-image': 'by-name',
          'min-ram': 512,
          'flavor-name': 'tiny',
          'key-name': 'keys',
          'console-log': true,
          'host-key-checking': true,
          'boot-from-volume': true,
          'volume-size': 20,
          'instance-properties': { a: 'b', number: 5 },
          'dynamic-instance-properties': { tenant: 'of {request.tenant_name}' },
          userdata: '#cloud-config\n',
          networks: ['public'],
        },
        { name: 'own', diskimage: 'built', 'min-ram': 1024 },
        { name: 'either', 'cloud-image': 'by-id', 'flavor-names': ['m1.small', 'm1.tiny'] },
      ],
    },
  ],
};

const label = ['pools', 0, 'labels', 0] as const;

const configuration: DriverFixture['configuration'] = {
  accepted: [everyKey],
  refused: [
    {
      why: 'a template over an unknown field of requests',
      section: section({}, { 'dynamic-instance-properties': { tenant: '{request.tennant_name}' } }),
      at: [...label, 'dynamic-instance-properties', 'tenant'],
    },
    {
      why: 'metadata that is too long',
      section: section({}, { 'instance-properties': { long: 'x'.repeat(256) } }),
      at: [...label, 'instance-properties', 'long'],
    },
    {
      why: 'user data that is too long',
      section: section({}, { userdata: 'x'.repeat(50_000) }),
      at: [...label, 'userdata'],
    },
  ],
};

/** The driver on a simulated cloud. */
export const simulated: DriverFixture = {
  name: 'openstack',
  packageFolder: join(__dirname, '..'),
  configuration,
  // Nova never copies the metadata of a server to another one.
  can: abilitiesExcept('image-times', 'instance-copies', 'reused-ids'),
  async open(): Promise<TestCloud> {
    const opened = await openCloud({ pageLimit: 3 });
    const { cloud, time, environment } = opened;
    return {
      time,
      section: used,
      site: { settings: { cloud: 'real' }, keys: { rate: 0 } },
      makeDriver: () => openStackDriver(environment),
      makeAdapter: (config) => new OpenStackAdapter(config as OpenStackProvider, environment),
      resources: () => resourcesOf(cloud),
      addForeignInstances: (count) => addForeignServers(opened, count),
      setTimes: (times) => cloud.configure(times),
      setListLag: (ms) => {
        const lag = { kind: 'lag', lacksNewestMs: ms, showsDeletedMs: ms } as const;
        cloud.faults.add({ on: 'compute.servers.list-detail', times: Infinity, fault: lag });
      },
      breakInstance: (id) => void cloud.faults.breakServer(text(id), 'the host broke down'),
      destroyInstance: (id) => void cloud.faults.removeServer(text(id)),
      copyImage: (id) => snapshotOfServer(opened, text(id)),
      setQuota: ({ instances }) => cloud.quota('demo').set({ instances }),
      plan: (fault) => plan(cloud, fault),
      secrets: () => [...cloud.calls.credentials],
      http: httpControls({
        ...cloud,
        clock: time.clock,
        any: OPERATIONS.any,
        create: OPERATIONS.create,
        throttled: { kind: 'status', status: 503 },
      }),
      replaceCredentials: () => cloud.faults.revokeTokens(),
      clearFaults: () => cloud.faults.clear(),
      imageLabel: { pool: 'main', label: 'own' },
      machineTypeLabel: { pool: 'main', label: 'either' },
      close: () => cloud.close(),
    };
  },
};

const OPERATIONS: Readonly<Record<PlannedFault['operation'], FaultRule['on']>> = {
  any: ({ service }) => service !== 'identity',
  create: 'compute.servers.create',
  delete: 'compute.servers.delete',
  list: 'compute.servers.list-detail',
  upload: 'image.images.upload',
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
  throttle: { kind: 'status', status: 429, retryAfter: 2 },
  auth: { kind: 'status', status: 401 },
  conflict: status(409, 'conflictingRequest', { code: 409, message: 'the server has another task at the moment' }),
  'not-found': status(404, 'itemNotFound', { code: 404, message: 'Instance could not be found.' }),
  quota: status(403, 'forbidden', {
    code: 403,
    message: 'Quota exceeded for instances: Requested 1, but already used 3 of 3 instances',
  }),
  capacity: status(409, 'NeutronError', {
    type: 'IpAddressGenerationFailure',
    message: 'No more IP addresses available on network.',
    detail: '',
  }),
  invalid: status(400, 'badRequest', { code: 400, message: 'Invalid key_name provided.' }),
};

function status(code: number, kind: string, details: JsonObject): FaultRule['fault'] {
  return { kind: 'status', status: code, body: JSON.stringify({ [kind]: details }) };
}

function plan({ faults }: SimulatedOpenStack, { operation, kind, skip }: PlannedFault): void {
  faults.add({ on: OPERATIONS[operation], after: skip, fault: FAULTS[kind] });
  // The driver replaces a refused token at the next login, which must fail as well.
  if (kind === 'auth') faults.add({ on: 'identity.tokens.create', fault: { kind: 'status', status: 401 } });
}

function resourcesOf({ inspect }: SimulatedOpenStack): CloudResource[] {
  const servers = inspect.servers().filter(({ metadata }) => 'nodepool_node_id' in metadata);
  const images = inspect.images().filter(({ properties }) => 'nodepool_upload_id' in properties);
  return [
    ...servers.map(({ id, metadata }) => ({ kind: 'instance', externalId: id, tags: metadata })),
    ...images.map(({ id, properties }) => ({ kind: 'image', externalId: id, tags: properties })),
  ];
}

/** Creates a server from an image, and a snapshot of the server, which inherits the properties of the image. */
async function snapshotOfServer({ cloud, time }: OpenCloud, imageId: string): Promise<() => boolean> {
  const bed = await TestBed.open(cloud.cloudsYaml);
  const created = await bed.createServer('of-a-person', { more: { imageRef: imageId } });
  const id = textOf(created.member('server')['id']);
  await time.until(
    () => cloud.inspect.servers().some((server) => server.id === id && server.status === 'ACTIVE'),
    60_000,
  );
  await bed.demo.post('compute', `/servers/${id}/action`, { createImage: { name: 'snapshot' } });
  cloud.faults.removeServer(id);
  return () => cloud.inspect.images().some(({ name }) => name === 'snapshot');
}

function text(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new TypeError('ids of OpenStack are texts');
}
