/** The drivers of the matrix, each with its simulated cloud. */

import { azureDriver } from '@nodepool/driver-azure';
import { driver as gceDriver } from '@nodepool/driver-gce';
import { kubernetesDriver } from '@nodepool/driver-kubernetes';
import { openStackDriver } from '@nodepool/driver-openstack';
import { SAMPLE_SUBNET_ID, startSimulatedAzure } from '@nodepool/simulated-azure';
import type { CallFault } from '@nodepool/simulated-cloud';
import { PROJECT, startSimulatedGce } from '@nodepool/simulated-gce';
import { startSimulatedKubernetes } from '@nodepool/simulated-kubernetes';
import { startSimulatedOpenStack } from '@nodepool/simulated-openstack';
import { aws } from './aws.js';
import { ALL, BOOT_MS, common, DELETE_MS, LATENCY_MS, mainPool, nameOf, NO_LOGIN, type OpenTarget } from './target.js';

/** Time after which nova's scheduler gives up (ms). */
const SCHEDULING_MS = 3000;
/** Time for which pods fail in the disturbances of pods (ms). */
const POD_FAILURE_MS = 20_000;

const openStack: OpenTarget = async ({ clock, random, label }) => {
  const calmSettings = { bootMs: BOOT_MS, deleteMs: DELETE_MS, latencyMs: LATENCY_MS };
  const cloud = await startSimulatedOpenStack({ clock, random, settings: calmSettings });
  const { faults } = cloud;
  const fail = (fault: CallFault, on = ALL): void => void faults.add({ on, fault, times: Infinity });
  const status = (code: number, body: string, on: string) => (): void =>
    void faults.add({ on, times: Infinity, fault: { kind: 'status', status: code, body } });
  return {
    driver: openStackDriver({
      env: { OS_CLIENT_CONFIG_FILE: cloud.cloudsYaml },
      cwd: '/',
      home: '/',
      siteDirectories: [],
    }),
    name: 'openstack',
    section: {
      driver: 'openstack',
      cloud: 'real',
      rate: 0,
      'cloud-images': [{ name: 'test-image' }],
      pools: [
        mainPool(
          { 'cloud-image': 'test-image', 'flavor-name': 'm1.tiny', ...label },
          { ...NO_LOGIN, networks: ['private'], 'auto-floating-ip': false },
        ),
      ],
    },
    fail,
    refuseLogin: () => {
      faults.revokeTokens();
      fail({ kind: 'status', status: 401 }, 'identity');
      fail({ kind: 'status', status: 401 }, 'compute');
    },
    takeAway: (id) => void faults.breakServer(nameOf(id), 'the server was preempted'),
    special: new Map([
      [
        'no valid host',
        () => {
          cloud.configure({ bootMs: SCHEDULING_MS });
          faults.nextServers({ times: Infinity, behaviour: { boot: 'error', message: 'No valid host was found.' } });
        },
      ],
      [
        'quota exceeded',
        status(403, '{"forbidden": {"message": "Quota exceeded for instances"}}', 'compute.servers.create'),
      ],
      [
        'availability zone not available',
        status(
          400,
          '{"badRequest": {"message": "The requested availability zone is not available"}}',
          'compute.servers.create',
        ),
      ],
    ]),
    ...common(cloud, calmSettings),
  };
};

const azure: OpenTarget = async ({ clock, random, label }) => {
  const calmSettings = { bootMs: BOOT_MS, deleteMs: DELETE_MS, latencyMs: LATENCY_MS };
  const cloud = await startSimulatedAzure({ clock, random, settings: calmSettings });
  const { faults } = cloud;
  const fail = (fault: CallFault, on = ALL): void => {
    const coded = fault.kind === 'status' ? { ...fault, code: 'Simulated' } : fault;
    faults.add({ on, fault: coded, times: Infinity });
  };
  const status = (code: number, name: string) => (): void =>
    void faults.add({
      on: 'virtualMachines.put',
      times: Infinity,
      fault: { kind: 'status', status: code, code: name, message: name },
    });
  const shared = common(cloud, calmSettings);
  return {
    driver: azureDriver({ AZURE_AUTH_LOCATION: cloud.authFile }),
    name: 'azure',
    section: {
      driver: 'azure',
      rate: 0,
      location: 'centralus',
      'resource-group': 'nodepool',
      'resource-group-location': 'centralus',
      'subnet-id': SAMPLE_SUBNET_ID,
      'zuul-public-key': 'ssh-ed25519 AAAAC3Nz zuul',
      'cloud-images': [
        {
          name: 'debian',
          username: 'zuul',
          'image-reference': { publisher: 'Debian', offer: 'debian-12', sku: '12', version: 'latest' },
        },
      ],
      pools: [
        mainPool({ 'cloud-image': 'debian', 'hardware-profile': { 'vm-size': 'Standard_B1ls' }, ...label }, NO_LOGIN),
      ],
    },
    fail,
    refuseLogin: () => {
      cloud.revokeTokens();
      fail({ kind: 'status', status: 401 });
    },
    takeAway: (id) => cloud.machines.evict(nameOf(id)),
    special: new Map([
      ['showing an expired certificate', () => cloud.presentExpiredCertificate(true)],
      ['AllocationFailed', status(409, 'AllocationFailed')],
      ['QuotaExceeded', status(409, 'QuotaExceeded')],
      ['image not replicated yet', status(404, 'GalleryImageNotFound')],
    ]),
    ...shared,
    calm: async () => {
      cloud.presentExpiredCertificate(false);
      await shared.calm();
    },
  };
};

const ZONE = 'us-central1-a';

const gce: OpenTarget = async ({ clock, random, label }) => {
  const calmSettings = { bootMs: BOOT_MS, deleteMs: DELETE_MS, latencyMs: LATENCY_MS };
  const cloud = await startSimulatedGce({ clock, random, settings: calmSettings });
  cloud.setLimits({ INSTANCES: 1000, CPUS: 10_000, IN_USE_ADDRESSES: 1000, DISKS_TOTAL_GB: 1_000_000 });
  const { faults } = cloud;
  const fail = (fault: CallFault, on = ALL): void => void faults.add({ on, fault, times: Infinity });
  const operation = (code: string) => (): void =>
    void faults.add({
      on: 'instances.insert',
      times: Infinity,
      fault: { kind: 'operation-error', code, message: code },
    });
  return {
    driver: gceDriver,
    name: 'gce',
    section: {
      driver: 'gce',
      project: PROJECT,
      region: 'us-central1',
      zone: ZONE,
      rate: 0,
      'credentials-file': cloud.credentialsFile,
      'api-endpoint': cloud.url,
      'storage-endpoint': cloud.url,
      'cloud-images': [
        { name: 'debian', 'image-project': 'debian-cloud', 'image-family': 'debian-12', username: 'zuul' },
      ],
      pools: [mainPool({ 'cloud-image': 'debian', 'instance-type': 'e2-micro', ...label }, NO_LOGIN)],
    },
    fail,
    refuseLogin: () => fail({ kind: 'status', status: 401 }),
    takeAway: (id) => void cloud.stopInstance(ZONE, nameOf(id), 'Instance was preempted.'),
    special: new Map([
      ['ZONE_RESOURCE_POOL_EXHAUSTED', operation('ZONE_RESOURCE_POOL_EXHAUSTED')],
      ['QUOTA_EXCEEDED', operation('QUOTA_EXCEEDED')],
      ['VM_MIN_COUNT_NOT_REACHED', operation('VM_MIN_COUNT_NOT_REACHED')],
    ]),
    ...common(cloud, calmSettings),
  };
};

const kubernetes: OpenTarget = async ({ clock, random, label }) => {
  const calmSettings = { bootMs: BOOT_MS, deleteMs: DELETE_MS, latencyMs: LATENCY_MS, podFailure: undefined };
  const cluster = await startSimulatedKubernetes({ clock, random, settings: calmSettings });
  const { faults } = cluster;
  const fail = (fault: CallFault, on = ALL): void => void faults.add({ on, fault, times: Infinity });
  const pods = (kind: 'missing' | 'secret' | 'full' | 'huge', forMs: number) => (): void =>
    cluster.configure({ podFailure: { kind, forMs } });
  return {
    driver: kubernetesDriver('kubernetes', {
      env: { KUBECONFIG: cluster.kubeconfig },
      home: '/',
      serviceAccount: '/',
    }),
    name: 'kubernetes',
    section: {
      driver: 'kubernetes',
      context: 'admin',
      pools: [mainPool({ type: 'pod', image: 'docker.io/fedora:28', cpu: 2, memory: 1024, ...label })],
    },
    fail,
    refuseLogin: () => fail({ kind: 'status', status: 401 }),
    takeAway: (id) => {
      const [pod] = cluster.list('pods', nameOf(id));
      if (pod === undefined) throw new Error(`namespace ${nameOf(id)} has no pod`);
      const status = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' };
      cluster.setPodStatus(nameOf(id), pod.metadata.name, status);
    },
    special: new Map([
      ['pods that cannot pull their image for 20 s', pods('missing', POD_FAILURE_MS)],
      ['pods whose secrets are not cached for 20 s', pods('secret', POD_FAILURE_MS)],
      ['pods that can never pull their image', pods('missing', Infinity)],
      ['pods that arrive at full nodes (OutOfcpu)', pods('full', Infinity)],
      ['pods that fit on no node', pods('huge', Infinity)],
    ]),
    ...common(cluster, calmSettings),
  };
};

export const TARGETS: ReadonlyMap<string, OpenTarget> = new Map([
  ['openstack', openStack],
  ['azure', azure],
  ['gce', gce],
  ['kubernetes', kubernetes],
  ['aws', aws],
]);
