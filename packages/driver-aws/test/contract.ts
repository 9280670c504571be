/** The contract fixture: this driver on a simulated AWS. */

import { join } from 'node:path';
import { EC2Client, RunInstancesCommand, TerminateInstancesCommand } from '@aws-sdk/client-ec2';
import type { JsonObject } from '@nodepool/core';
import { KEY_NAME, REGION, type AwsFault, type FaultRule, type SimulatedAws } from '@nodepool/simulated-aws';
import { httpControls } from '@nodepool/simulated-cloud';
import {
  abilitiesExcept,
  type CloudResource,
  type DriverFixture,
  type PlannedFault,
  type TestCloud,
} from '@nodepool/driver-kit';
import { AwsAdapter, awsDriver, type AwsProvider } from '../src/index.js';
import { tagsOf } from '../src/identity.js';
import { idOf, openCloud, section, type OpenCloud } from './cloud.js';

/** More than one part of an upload. */
const IMAGE_CONTENT = Buffer.alloc(9 * 1024 * 1024, 'disk');

const label = { 'key-name': KEY_NAME, 'cloud-image': 'amazon' };

function used(open: OpenCloud): JsonObject {
  const { subnets } = open.cloud;
  return section(open, {
    'object-storage': { 'bucket-name': 'acme-images' },
    diskimages: [{ name: 'built' }],
    pools: [
      {
        name: 'main',
        'max-servers': 100,
        'subnet-ids': Object.values(subnets).slice(0, 3),
        labels: [
          { ...label, name: 'small', 'instance-type': 'm5.large' },
          { name: 'own', diskimage: 'built', 'key-name': KEY_NAME, 'instance-type': 'm5.large' },
          { ...label, name: 'either', 'instance-types': ['m5.xlarge', 'm5.large'] },
        ],
      },
    ],
  });
}

/** Every key of the schema, except those that exclude another one. */
const everyKey: JsonObject = {
  name: 'all',
  driver: 'aws',
  'region-name': 'us-east-1',
  'profile-name': 'ci',
  'role-arn': 'arn:aws:iam::123456789012:role/nodepool',
  'web-identity-token-file': '/var/run/secrets/token',
  'endpoint-url': 'http://127.0.0.1:4566/',
  'interruption-queue': 'https://sqs.us-east-1.amazonaws.com/123456789012/nodepool',
  'max-servers': 50,
  'max-cores': 200,
  'max-ram': 800_000,
  'max-resources': { 'L-1216C47A': 64 },
  'public-ipv4': true,
  'public-ipv6': false,
  'subnet-ids': ['subnet-1', 'subnet-2'],
  'use-internal-ip': false,
  'host-key-checking': true,
  'object-storage': { 'bucket-name': 'acme-images' },
  'image-format': 'raw',
  'image-import-timeout': 7200,
  'image-source-region': 'us-west-2',
  'image-source-timeout': 600,
  'max-concurrency': 5,
  priority: 10,
  'launch-retries': 2,
  'launch-timeout': 600,
  'boot-timeout': 30,
  rate: 5,
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
      username: 'zuul',
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
      architecture: 'arm64',
      'ena-support': true,
      'volume-size': 20,
      'volume-type': 'gp3',
      iops: 4000,
      throughput: 200,
      'import-method': 'ebs-direct',
      'imds-support': 'v2.0',
      tags: { team: 'ci' },
    },
  ],
  'cloud-images': [
    {
      name: 'by-id',
      'image-id': 'ami-1',
      username: 'admin',
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
    {
      name: 'by-filters',
      username: 'admin',
      'image-filters': [
        { name: 'name', values: ['debian-12-*'] },
        { Name: 'architecture', Values: ['x86_64'] },
      ],
      owners: ['136693071363'],
    },
  ],
  pools: [
    {
      name: 'main',
      'max-servers': 10,
      'max-cores': 20,
      'max-ram': 80_000,
      'max-resources': { 'L-34B43A08': 8 },
      priority: 5,
      'node-attributes': { key: 'value' },
      'availability-zone': 'us-east-1a',
      'security-group-id': 'sg-1',
      'subnet-id': 'subnet-1',
      'public-ip-address': false,
      'public-ipv4': true,
      'public-ipv6': true,
      'host-key-checking': true,
      'use-internal-ip': true,
      labels: [
        {
          name: 'small',
          'cloud-image': 'by-id',
          'instance-type': 'm7i.large',
          'key-name': KEY_NAME,
          'host-key-checking': true,
          'ebs-optimized': true,
          'volume-type': 'gp3',
          'volume-size': 40,
          iops: 4000,
          throughput: 200,
          'kms-key-id': 'alias/nodes',
          userdata: '#cloud-config\n',
          'iam-instance-profile': { name: 'nodes' },
          tags: { department: 'R&D' },
          'dynamic-tags': { tenant: 'of {request.tenant_name}' },
          'use-spot': 'prefer',
          imdsv2: 'required',
          'dedicated-host': false,
        },
        {
          name: 'host',
          'cloud-image': 'by-id',
          'instance-type': 'm5.large',
          'key-name': KEY_NAME,
          'dedicated-host': true,
          'iam-instance-profile': { arn: 'arn:aws:iam::123456789012:instance-profile/nodes' },
          imdsv2: 'optional',
        },
        {
          name: 'fleet',
          'cloud-image': 'by-filters',
          'key-name': KEY_NAME,
          'use-spot': true,
          fleet: { 'instance-types': ['m5.large', 'm5a.large'], 'allocation-strategy': 'price-capacity-optimized' },
        },
      ],
    },
    {
      name: 'second',
      'security-group-ids': ['sg-1', 'sg-2'],
      'subnet-ids': ['subnet-1', 'subnet-2'],
      labels: [{ name: 'own', diskimage: 'built', 'key-name': KEY_NAME, 'instance-types': ['m5.large', 'm6i.large'] }],
    },
  ],
};

const at = ['pools', 0, 'labels', 0] as const;

function example(change: JsonObject, pool: JsonObject = {}, provider: JsonObject = {}): JsonObject {
  return {
    name: 'test',
    driver: 'aws',
    'region-name': 'us-east-1',
    'cloud-images': [{ name: 'amazon', username: 'ec2-user', 'image-id': 'ami-1' }],
    pools: [{ name: 'main', ...pool, labels: [{ ...label, name: 'small', ...change }] }],
    ...provider,
  };
}

const size = { 'instance-type': 'm5.large' };
const fleetOf = (strategy: string): JsonObject => ({
  fleet: { 'instance-types': ['m5.large'], 'allocation-strategy': strategy },
});

export const configuration: DriverFixture['configuration'] = {
  accepted: [everyKey, example(size), example({ ...fleetOf('prioritized'), 'use-spot': true })],
  refused: [
    {
      why: 'a template over an unknown field of requests',
      section: example({ ...size, 'dynamic-tags': { tenant: '{request.tennant_name}' } }),
      at: [...at, 'dynamic-tags', 'tenant'],
    },
    {
      why: 'a dedicated host for spot instances',
      section: example({ ...size, 'use-spot': true, 'dedicated-host': true }, { 'availability-zone': 'us-east-1a' }),
      at: [...at, 'dedicated-host'],
    },
    {
      why: 'a dedicated host without a zone',
      section: example({ ...size, 'dedicated-host': true }),
      at: [...at, 'dedicated-host'],
    },
    {
      why: 'a strategy of spot fleets for an on-demand fleet',
      section: example(fleetOf('diversified')),
      at: [...at, 'fleet', 'allocation-strategy'],
    },
    {
      why: 'a fleet that prefers spot',
      section: example({ ...fleetOf('prioritized'), 'use-spot': 'prefer' }),
      at: [...at, 'use-spot'],
    },
    {
      why: 'a tag that AWS reserves',
      section: example({ ...size, tags: { 'aws:name': 'x' } }),
      at: [...at, 'tags', 'aws:name'],
    },
    {
      why: 'user data that is too long',
      section: example({ ...size, userdata: 'x'.repeat(17_000) }),
      at: [...at, 'userdata'],
    },
    {
      why: 'a disk image without a bucket',
      section: example(size, {}, { diskimages: [{ name: 'built' }] }),
      at: ['diskimages', 0],
    },
    {
      why: 'metadata with tokens for an image that AWS imports',
      section: example(
        size,
        {},
        {
          'object-storage': { 'bucket-name': 'b' },
          diskimages: [{ name: 'built', 'import-method': 'image', 'imds-support': 'v2.0' }],
        },
      ),
      at: ['diskimages', 0, 'imds-support'],
    },
  ],
};

/** The driver on a simulated cloud. */
export const simulated: DriverFixture = {
  name: 'aws',
  packageFolder: join(__dirname, '..'),
  configuration,
  // AWS limits no number of instances, and never uses ids again.
  can: abilitiesExcept('quota', 'reused-ids', 'image-times', 'fault:upload:refuse'),
  exempt: {
    'client.redirect-within': 'the signature of a request names its address, so AWS never redirects these calls',
    'client.retry-date': 'AWS demands no waits by dates, and its library keeps the headers of its errors to itself',
  },
  async open(): Promise<TestCloud> {
    const open = await openCloud({ pageSize: 3 });
    const { cloud, time } = open;
    return {
      time,
      section: used(open),
      site: {
        settings: { 'region-name': REGION, 'key-name': KEY_NAME },
        keys: { rate: 0, 'endpoint-url': cloud.url },
      },
      makeDriver: () => awsDriver(open.env),
      makeAdapter: (config) => new AwsAdapter(config as AwsProvider, open.env),
      resources: () => resourcesOf(cloud),
      addForeignInstances: (count) => addForeign(open, count),
      setTimes: ({ bootMs, deleteMs }) => cloud.configure({ pendingMs: bootMs, shuttingDownMs: deleteMs }),
      setListLag: (ms) => cloud.configure({ readLagMs: ms }),
      async breakInstance(id) {
        // A terminated instance no longer exists; one that shuts down does.
        cloud.configure({ shuttingDownMs: 100_000 });
        await withClient(open, (client) => client.send(new TerminateInstancesCommand({ InstanceIds: [idOf(id)] })));
      },
      destroyInstance: (id) => cloud.forgetInstance(idOf(id)),
      copyInstance: (id) => {
        const copy = cloud.duplicate(idOf(id));
        return () => cloud.inspect.instances().some((each) => each.id === copy && each.state === 'running');
      },
      copyImage: (id) => {
        const copy = cloud.duplicate(idOf(id));
        return () => cloud.inspect.images().some((image) => image.id === copy);
      },
      plan: (fault) => plan(cloud, fault),
      secrets: () => [cloud.credentials.secretAccessKey],
      http: httpControls({
        ...cloud,
        clock: time.clock,
        any: OPERATIONS.any,
        create: OPERATIONS.create,
        throttled: { kind: 'status', status: 503, code: 'RequestLimitExceeded' },
      }),
      replaceCredentials() {
        cloud.expireCredentials();
        cloud.revokeCredentials(true);
        open.writeCredentials(cloud.issueCredentials(86_400_000));
      },
      clearFaults: () => cloud.faults.clear(),
      imageContent: IMAGE_CONTENT,
      imageLabel: { pool: 'main', label: 'own' },
      machineTypeLabel: { pool: 'main', label: 'either' },
      close: () => open.close(),
    };
  },
};

const OPERATIONS: Readonly<Record<PlannedFault['operation'], FaultRule['on']>> = {
  any: '*',
  create: 'ec2.RunInstances',
  delete: 'ec2.TerminateInstances',
  list: 'ec2.DescribeInstances',
  upload: 's3.UploadPart',
};

const FAULTS: Readonly<Record<PlannedFault['kind'], AwsFault>> = {
  refuse: { kind: 'status', status: 500, code: 'InternalError' },
  'fail-after': { kind: 'status', status: 500, code: 'InternalError', when: 'after' },
  'lose-answer': { kind: 'cut', when: 'after' },
  hang: { kind: 'hang', when: 'before' },
  echo: { kind: 'proxy', status: 502, echo: true },
  'proxy-404': { kind: 'proxy', status: 404 },
  'proxy-200': { kind: 'proxy', status: 200 },
  'proxy-json': { kind: 'proxy', status: 200, json: { message: 'sign in' } },
  throttle: { kind: 'throttle' },
  auth: { kind: 'status', status: 401, code: 'AuthFailure' },
  conflict: { kind: 'status', status: 400, code: 'IncorrectInstanceState' },
  'not-found': { kind: 'status', status: 400, code: 'InvalidInstanceID.NotFound' },
  quota: { kind: 'status', status: 400, code: 'VcpuLimitExceeded' },
  capacity: { kind: 'status', status: 500, code: 'InsufficientInstanceCapacity' },
  invalid: { kind: 'status', status: 400, code: 'InvalidParameterValue' },
};

function plan({ faults }: SimulatedAws, { operation, kind, skip }: PlannedFault): void {
  // The driver repeats a call with refused credentials once, after it has read them again.
  faults.add({ on: OPERATIONS[operation], after: skip, times: kind === 'auth' ? 2 : 1, fault: FAULTS[kind] });
}

function resourcesOf({ inspect }: SimulatedAws): CloudResource[] {
  const instances = inspect.instances().filter(({ state }) => state !== 'terminated');
  const tagged = instances.map(({ id, tags, clientToken, launchIndex }) => {
    const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    return {
      kind: 'instance',
      externalId: id,
      tags: tagsOf({ Tags, ClientToken: clientToken, AmiLaunchIndex: launchIndex }),
    };
  });
  return [
    ...tagged.filter(({ tags }) => 'nodepool_node_id' in tags),
    ...inspect
      .images()
      .filter(({ tags }) => 'nodepool_upload_id' in tags)
      .map(({ id, tags }) => ({ kind: 'image', externalId: id, tags })),
  ];
}

function addForeign(open: OpenCloud, count: number): Promise<void> {
  return withClient(open, async (client) => {
    for (let index = 0; index < count; index += 1) {
      const ImageId = open.cloud.publicImageId;
      await client.send(new RunInstancesCommand({ ImageId, InstanceType: 't3.micro', MinCount: 1, MaxCount: 1 }));
    }
  });
}

/** Makes calls as another program does, which `calls` of the cloud does not count. */
async function withClient({ cloud }: OpenCloud, work: (client: EC2Client) => Promise<unknown>): Promise<void> {
  const client = new EC2Client({ region: REGION, endpoint: cloud.url, credentials: cloud.credentials });
  await work(client);
  client.destroy();
  cloud.calls.reset();
}
