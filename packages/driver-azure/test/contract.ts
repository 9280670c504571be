/** The contract fixture: this driver on a simulated Azure. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExternalId, JsonObject } from '@nodepool/core';
import { httpControls, type FaultRule, type SimulatedAzure } from '@nodepool/simulated-azure';
import {
  abilitiesExcept,
  type CloudResource,
  type DriverFixture,
  type PlannedFault,
  type TestCloud,
} from '@nodepool/driver-kit';
import { AzureAdapter, azureDriver, type AzureProvider } from '../src/index.js';
import { openCloud, section } from './cloud.js';
import { vhd } from './vhd-file.js';

const IMAGE_CONTENT = vhd();

const size = { 'hardware-profile': { 'vm-size': 'Standard_B1ls' } };

const sizes = {
  'hardware-profiles': [{ 'vm-size': 'Standard_D4s_v5' }, { 'vm-size': 'Standard_B1ls' }],
};

/** The cloud ignores the case of sizes. */
const sizeTwice = {
  'hardware-profiles': [{ 'vm-size': 'Standard_B1ls' }, { 'vm-size': 'standard_b1ls' }],
};

const used: JsonObject = section({
  diskimages: [{ name: 'built' }],
  pools: [
    {
      name: 'main',
      'max-servers': 100,
      labels: [
        { name: 'small', 'cloud-image': 'debian', ...size },
        { name: 'own', diskimage: 'built', ...size },
        { name: 'either', 'cloud-image': 'debian', ...sizes },
      ],
    },
  ],
});

const image = { username: 'zuul' };

/** Every key of the schema, except those that exclude another one. */
const everyKey: JsonObject = {
  name: 'all',
  driver: 'azure',
  'auth-path': '/etc/nodepool/azure.json',
  location: 'centralus',
  'resource-group': 'nodepool',
  'resource-group-location': 'centralus',
  network: { 'resource-group': 'networks', network: 'ci', subnet: 'nodes' },
  ipv4: true,
  ipv6: true,
  'public-ipv4': true,
  'public-ipv6': true,
  'use-internal-ip': false,
  'host-key-checking': true,
  'zuul-public-key': 'ssh-rsa AAAA',
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
      'hyper-v-generation': 'V2',
      'zone-resilient': true,
      tags: { team: 'ci' },
      username: 'zuul',
      key: 'ssh-rsa AAAA',
      password: 'Secret-Password-1',
      'generate-password': false,
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
  ],
  'cloud-images': [
    {
      ...image,
      name: 'by-reference',
      'image-reference': { publisher: 'Debian', offer: 'debian-12', sku: '12', version: 'latest' },
      key: 'ssh-rsa AAAA',
      password: 'Secret-Password-1',
      'generate-password': false,
      'python-path': 'auto',
      'shell-type': 'sh',
      'connection-type': 'ssh',
      'connection-port': 22,
    },
    { ...image, name: 'by-id', 'image-id': '/subscriptions/x/resourceGroups/y/providers/Microsoft.Compute/images/z' },
    { ...image, name: 'by-filter', 'image-filter': { name: 'a', location: 'centralus', tags: { b: 'c' } } },
    { ...image, name: 'community', 'community-gallery-image': { 'gallery-name': 'g', name: 'i', version: 'latest' } },
    { ...image, name: 'shared', 'shared-gallery-image': { 'gallery-name': 'g', name: 'i' } },
    {
      ...image,
      name: 'shared-version',
      'shared-gallery-image': { 'gallery-name': 'g', name: 'i', version: '1.0.0' },
    },
  ],
  pools: [
    {
      name: 'main',
      'max-servers': 10,
      zones: ['1', '2'],
      priority: 5,
      'node-attributes': { key: 'value' },
      ipv4: true,
      ipv6: false,
      'public-ipv4': true,
      'public-ipv6': false,
      'host-key-checking': true,
      'use-internal-ip': true,
      labels: [
        {
          ...size,
          name: 'small',
          'cloud-image': 'by-reference',
          'host-key-checking': true,
          tags: { department: 'R&D' },
          'dynamic-tags': { tenant: 'of {request.tenant_name}' },
          'user-data': 'user',
          'custom-data': '#cloud-config\n',
          'volume-size': 100,
          'volume-type': 'Standard_LRS',
          'ephemeral-os-disk': true,
          spot: true,
          'spot-max-price': 0.05,
          'security-profile': { 'security-type': 'TrustedLaunch', 'secure-boot': true, vtpm: true },
          identities: [
            '/subscriptions/x/resourceGroups/y/providers/Microsoft.ManagedIdentity/userAssignedIdentities/z',
          ],
        },
        { ...size, name: 'own', diskimage: 'built' },
        { ...sizes, name: 'either', 'cloud-image': 'by-id' },
      ],
    },
  ],
};

const { 'subnet-id': _subnet, ...withoutSubnet } = section();
const label = ['pools', 0, 'labels', 0] as const;

const configuration: DriverFixture['configuration'] = {
  accepted: [everyKey, section(), { ...withoutSubnet, network: 'NodePool' }],
  refused: [
    {
      why: 'a template over an unknown field of requests',
      section: section({}, { 'dynamic-tags': { tenant: '{request.tennant_name}' } }),
      at: [...label, 'dynamic-tags', 'tenant'],
    },
    {
      why: 'a duplicate size',
      section: section({}, {}, { labels: [{ name: 'small', 'cloud-image': 'debian', ...sizeTwice }] }),
      at: [...label, 'hardware-profiles', 1, 'vm-size'],
    },
    {
      why: 'a tag that is too long',
      section: section({}, { tags: { long: 'x'.repeat(257) } }),
      at: [...label, 'tags', 'long'],
    },
    {
      why: 'custom data that is too long',
      section: section({}, { 'custom-data': 'x'.repeat(70_000) }),
      at: [...label, 'custom-data'],
    },
  ],
};

/** The driver on a simulated cloud. */
export const simulated: DriverFixture = {
  name: 'azure',
  packageFolder: join(__dirname, '..'),
  configuration,
  can: abilitiesExcept('zones', 'reused-ids', 'image-times', 'fault:upload:refuse'),
  exempt: {
    'outcome.create-refused': 'Azure accepts an identical PUT of an existing VM, so the driver repeats the creation',
    'outcome.create-hangs': 'Azure accepts an identical PUT of an existing VM, so the driver repeats the creation',
  },
  async open(): Promise<TestCloud> {
    const { cloud, time, env } = await openCloud({ pageLimit: 3, emptyPages: true });
    let secrets = 0;
    return {
      time,
      section: used,
      site: {
        settings: {
          ...{ location: 'centralus', 'resource-group': 'nodepool' },
          'zuul-public-key': 'ssh-ed25519 AAAAC3Nz zuul',
        },
        keys: { rate: 0 },
      },
      makeDriver: () => azureDriver(env),
      makeAdapter: (config) => new AzureAdapter(config as AzureProvider),
      resources: () => resourcesOf(cloud),
      addForeignInstances: (count) => {
        for (let index = 0; index < count; index += 1) cloud.machines.addForeign(`other-${index}`);
      },
      setTimes: (times) => cloud.configure(times),
      setListLag: (ms) => {
        cloud.faults.add({
          on: ({ operation }) => operation.endsWith('.list'),
          times: Infinity,
          fault: { kind: 'lag', ms },
        });
      },
      breakInstance: (id) => cloud.machines.break(text(id), 'the host broke down'),
      destroyInstance: (id) => cloud.machines.destroy(text(id)),
      copyInstance: (id) => copyOf(cloud, 'Microsoft.Compute/virtualMachines', text(id)),
      copyImage: (id) => copyOf(cloud, 'Microsoft.Compute/images', text(id)),
      setQuota: ({ instances }) => cloud.setLimit('virtualMachines', instances),
      plan: (fault) => plan(cloud, fault),
      secrets: () => [...cloud.calls.credentials],
      http: httpControls({
        ...cloud,
        clock: time.clock,
        any: OPERATIONS.any,
        create: OPERATIONS.create,
        throttled: { kind: 'status', status: 503, code: 'ServiceUnavailable' },
      }),
      replaceCredentials() {
        const clientSecret = `the new secret ${(secrets += 1)}`;
        const auth = JSON.parse(readFileSync(cloud.authFile, 'utf8')) as JsonObject;
        writeFileSync(cloud.authFile, JSON.stringify({ ...auth, clientSecret }));
        cloud.changeSecret(clientSecret);
        cloud.revokeTokens();
      },
      clearFaults: () => cloud.faults.clear(),
      imageContent: IMAGE_CONTENT,
      imageLabel: { pool: 'main', label: 'own' },
      machineTypeLabel: { pool: 'main', label: 'either' },
      close: () => cloud.close(),
    };
  },
};

const OPERATIONS: Readonly<Record<PlannedFault['operation'], FaultRule['on']>> = {
  any: ({ operation }) => !operation.startsWith('login.'),
  create: 'virtualMachines.put',
  delete: 'virtualMachines.delete',
  list: 'virtualMachines.list',
  upload: 'pages.put',
};

const FAULTS: Readonly<Record<PlannedFault['kind'], FaultRule['fault']>> = {
  refuse: { kind: 'status', status: 500, code: 'InternalServerError' },
  'fail-after': { kind: 'status', status: 500, code: 'InternalServerError', when: 'after' },
  'lose-answer': { kind: 'cut', when: 'after' },
  hang: { kind: 'hang', when: 'before' },
  echo: { kind: 'proxy', status: 502, echo: true },
  'proxy-404': { kind: 'proxy', status: 404 },
  'proxy-200': { kind: 'proxy', status: 200 },
  'proxy-json': { kind: 'proxy', status: 200, json: { message: 'sign in' } },
  throttle: { kind: 'status', status: 429, code: 'TooManyRequests', retryAfter: 2 },
  auth: { kind: 'status', status: 401, code: 'InvalidAuthenticationToken' },
  conflict: { kind: 'status', status: 409, code: 'AnotherOperationInProgress' },
  'not-found': { kind: 'status', status: 404, code: 'ResourceNotFound' },
  quota: {
    kind: 'status',
    status: 409,
    code: 'OperationNotAllowed',
    message: 'Operation could not be completed as it results in exceeding approved cores quota.',
  },
  capacity: {
    kind: 'status',
    status: 409,
    code: 'AllocationFailed',
    message: 'Allocation failed. We do not have sufficient capacity in this region.',
  },
  invalid: {
    kind: 'status',
    status: 400,
    code: 'InvalidParameter',
    message: 'The value of a parameter is invalid.',
  },
};

function plan({ faults }: SimulatedAzure, { operation, kind, skip }: PlannedFault): void {
  faults.add({ on: OPERATIONS[operation], after: skip, fault: FAULTS[kind] });
  // The driver replaces a refused token at the next login, which must fail as well.
  if (kind === 'auth')
    faults.add({ on: 'login.token', fault: { kind: 'status', status: 401, code: 'invalid_client' } });
}

function resourcesOf(cloud: SimulatedAzure): CloudResource[] {
  const vms = cloud.list('Microsoft.Compute/virtualMachines').filter(({ tags }) => 'nodepool_node_id' in tags);
  const images = cloud.list('Microsoft.Compute/images').filter(({ tags }) => 'nodepool_upload_id' in tags);
  return [
    ...vms.map(({ name, tags }) => ({ kind: 'instance', externalId: name, tags })),
    ...images.map(({ name, tags }) => ({ kind: 'image', externalId: name, tags })),
  ];
}

/** Copies a resource with its tags, as a person does who restores a backup. */
function copyOf(cloud: SimulatedAzure, type: Parameters<SimulatedAzure['list']>[0], name: string): () => boolean {
  const original = cloud.list(type).find((resource) => resource.name === name);
  if (original === undefined) throw new Error(`there is no ${type} ${name}`);
  const copy = cloud.copy(original, original.group, `copy-of-${name}`);
  return () => cloud.list(type).includes(copy);
}

function text(externalId: ExternalId): string {
  if (typeof externalId === 'string') return externalId;
  throw new TypeError('ids of Azure are texts');
}
