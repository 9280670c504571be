/** Launches that wait, fail or are refused, on a simulated cluster and in virtual time. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { sleep, type DriverError, type JsonObject } from '@nodepool/core';
import { TestProvider } from '@nodepool/driver-kit';
import { kubernetesDriver, type Flavour } from '../src/index.js';
import { openCluster, POOL, section, type OpenCluster } from './cluster.js';

let open: OpenCluster;
let provider: TestProvider;

async function start(flavour: Flavour, label: JsonObject = {}, more: JsonObject = {}): Promise<void> {
  open = await openCluster(flavour);
  const { time, environment } = open;
  const driver = kubernetesDriver(flavour, environment);
  provider = await new TestProvider({ time, driver, section: section(flavour, label, more) }).start();
}

afterEach(async () => {
  await provider.stop();
  await open.cluster.close();
});

const pass = (ms: number): Promise<void> => provider.end(sleep(open.time.clock, ms));

it('a launch is refused if the registry does not answer for a minute', async () => {
  await start('kubernetes', { image: 'docker.io/unreachable:1' });
  const began = open.time.clock.monotonic();
  const error = await provider.failedLaunch();
  expect(error).toMatchObject({ code: 'refused', outcome: 'applied' });
  expect(error.message).toMatch(/i\/o timeout/);
  expect(open.time.clock.monotonic() - began).toBeGreaterThanOrEqual(60_000);
});

it.each([
  ['missing', /not found/],
  ['secret', /failed to sync secret cache/],
] as const)('a launch succeeds if the kubelet recovers from %s, which is reported meanwhile', async (kind, message) => {
  await start('kubernetes');
  open.cluster.configure({ podFailure: { kind, forMs: 20_000 } });
  const reported: DriverError[] = [];
  const { interfaceIp } = await provider.launch('0000000001', { onRetry: (error) => void reported.push(error) });
  expect(interfaceIp).toBe('pod');
  expect(reported).toMatchObject([{ code: 'refused', message: expect.stringMatching(message) }]);
});

it('a launch whose pod arrives at a full node fails for lack of capacity', async () => {
  await start('kubernetes');
  open.cluster.configure({ podFailure: { kind: 'full', forMs: Infinity } });
  const error = await provider.failedLaunch();
  expect(error).toMatchObject({ code: 'capacity', outcome: 'applied', message: expect.stringContaining('OutOfcpu') });
});

it('a launch is repeated if the container of its pod cannot be created for a minute', async () => {
  await start('kubernetes', { image: 'docker.io/huge:1' });
  const launch = provider.begin();
  await pass(1000);
  const [pod] = open.cluster.list('pods');
  const { namespace = '', name = '' } = pod?.metadata ?? {};
  const waiting = { reason: 'CreateContainerError', message: 'context deadline exceeded' };
  const containerStatuses = [{ name: 'main', state: { waiting } }];
  open.cluster.setPodStatus(namespace, name, { phase: 'Pending', containerStatuses });
  await pass(30_000);
  open.cluster.setPodStatus(namespace, name, { phase: 'Running' });
  expect((await provider.end(launch)).interfaceIp).toBe('pod');
});

it('a launch fails within 30 seconds if its create call did not reach the cluster', async () => {
  await start('kubernetes');
  open.cluster.faults.add({ on: 'namespaces.create', fault: { kind: 'cut', when: 'before' } });
  const began = open.time.clock.monotonic();
  expect(await provider.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  expect(open.time.clock.monotonic() - began).toBeLessThan(30_000);
});

it('a dynamic label cannot replace a tag of the node', async () => {
  const tags = { nodepool_node_id: 'other', nodepool_provider_name: '{request.requestor}', tenant: 'a' };
  await start('kubernetes', { 'dynamic-labels': tags });
  const { externalId } = await provider.launch();
  const created = open.cluster.list('namespaces').find(({ metadata }) => metadata.name === externalId);
  expect(created?.metadata.labels).toMatchObject({
    nodepool_node_id: '0000000001',
    nodepool_provider_name: 'test',
    tenant: 'a',
  });
});

it('a launch waits for an unschedulable pod to be scheduled', async () => {
  await start('kubernetes', { image: 'docker.io/huge:1' });
  const launch = provider.begin();
  await pass(120_000);
  const [pod] = open.cluster.list('pods');
  const { namespace = '', name = '' } = pod?.metadata ?? {};
  open.cluster.setPodStatus(namespace, name, { phase: 'Running' });
  expect((await provider.end(launch)).interfaceIp).toBe('pod');
});

it('a node whose pod was deleted is listed as not ready', async () => {
  await start('kubernetes', { image: 'docker.io/debian:13' });
  const { externalId } = await provider.launch();
  const [pod] = open.cluster.list('pods');
  open.cluster.remove('pods', pod?.metadata.name ?? '', pod?.metadata.namespace);
  await pass(1000);
  const listed = await provider.end(provider.provider.listNodes(provider.call()));
  expect(listed).toMatchObject([{ externalId, ready: false, deleted: false }]);
});

it('a pod is created when its project has a default service account', async () => {
  await start('openshiftpods');
  open.cluster.remove('serviceaccounts', 'default', POOL);
  const launch = provider.begin();
  await pass(2000);
  open.cluster.add('serviceaccounts', { apiVersion: 'v1', kind: 'ServiceAccount' }, 'default', POOL);
  expect((await provider.end(launch)).connection?.type).toBe('kubectl');
});

it('bookmarks of a watch do not count as pods', async () => {
  await start('openshiftpods');
  const { externalId } = await provider.launch();
  await pass(180_000);
  const listed = await provider.end(provider.provider.listNodes(provider.call()));
  expect(listed.map((instance) => instance.externalId)).toEqual([externalId]);
});

it('pods of other programs count against the quota of their project until they have ended', async () => {
  await start('openshiftpods');
  const podOf = (phase: string): string => `build-${phase.toLowerCase()}`;
  const phases = ['Running', 'Succeeded', 'Failed'];
  const spec = { containers: [{ name: 'build', image: 'docker.io/build:1' }] };
  for (const phase of phases) open.cluster.add('pods', { apiVersion: 'v1', kind: 'Pod', spec }, podOf(phase), POOL);
  await pass(5000);
  for (const phase of phases) open.cluster.setPodStatus(POOL, podOf(phase), { phase });
  await pass(1000);
  const listed = await provider.end(provider.provider.listNodes(provider.call()));
  expect(Object.fromEntries(listed.map(({ externalId, resources }) => [externalId, resources]))).toEqual({
    'main-build-running': { instances: 1 },
    'main-build-succeeded': { instances: 0 },
    'main-build-failed': { instances: 0 },
  });
});

it('the limits are those of the quotas for all pods of the project, in the units of the configuration', async () => {
  await start('openshiftpods');
  const addQuota = (name: string, spec: JsonObject): void =>
    open.cluster.add('resourcequotas', { apiVersion: 'v1', kind: 'ResourceQuota', spec }, name, POOL);
  addQuota('all', { hard: { pods: '20', 'requests.memory': '3Gi', 'requests.ephemeral-storage': '5G' } });
  addQuota('cores', { hard: { cpu: '1500m', memory: '4Gi' } });
  addQuota('some', { hard: { pods: '1' }, scopes: ['BestEffort'] });
  const scope = { scopeName: 'PriorityClass', operator: 'In', values: ['high'] };
  addQuota('selected', { hard: { pods: '2' }, scopeSelector: { matchExpressions: [scope] } });
  const { provider: of } = provider;
  if (of.getQuotaLimits === undefined) throw new Error('the provider has no limits');
  const limits = await provider.end(of.getQuotaLimits(provider.call()));
  expect(limits.toResources()).toEqual({ instances: 20, cores: 1.5, ram: 3072, 'ephemeral-storage': 5000 });
});

it('calls that wait for the rate limit for longer than two minutes are made', async () => {
  await start('kubernetes', { type: 'namespace' }, { rate: 1, 'launch-timeout': 3600 });
  open.cluster.configure({ latencyMs: 50 });
  const ids = Array.from({ length: 150 }, (_, index) => String(index).padStart(10, '0'));
  await provider.end(Promise.all(ids.map((id) => provider.begin(id))));
  expect(provider.apiCalls.filter(({ status }) => status === 'timeout')).toEqual([]);
});

it.each([
  ['a request above the limit', { cpu: 4, 'cpu-limit': 2 }],
  ['a fraction of a device', { gpu: 0.5, 'gpu-resource': 'nvidia.com/gpu' }],
  ['an unknown volume', { 'volume-mounts': [{ name: 'data', mountPath: '/data' }] }],
  ['an invalid annotation', { annotations: { 'not a name': 'x' } }],
])('a label with %s is a configuration error', async (_case, label) => {
  await start('kubernetes', label);
  expect(await provider.failedLaunch()).toMatchObject({ code: 'configuration' });
});

it('a launch fails if its namespace is deleted', async () => {
  await start('kubernetes');
  open.cluster.configure({ controllerMs: 10_000, deleteMs: 60_000 });
  const launch = provider.begin();
  launch.catch(() => undefined);
  await pass(5000);
  const name = open.cluster.list('namespaces').at(-1)?.metadata.name ?? '';
  open.cluster.remove('namespaces', name);
  await expect(provider.end(launch)).rejects.toMatchObject({
    code: expect.stringMatching(/instance-failed|not-found/),
  });
});

describe('openshift', () => {
  const lastProject = (): string => open.cluster.list('namespaces').at(-1)?.metadata.name ?? '';

  it('creates projects with tags in their description, and the connection data of the Python Nodepool', async () => {
    await start('openshift', { type: 'project', image: 'unused' });
    const launched = await provider.launch();
    const port = launched.connection?.port as JsonObject;
    expect(launched.connection?.type).toBe('project');
    expect(Object.keys(port).sort()).toEqual(['ca_crt', 'host', 'namespace', 'skiptls', 'token', 'user']);
    expect(port['namespace']).toBe(launched.externalId);
    const offered = await provider.cleanUpRound();
    expect(offered.map(({ tags }) => tags['nodepool_node_id'])).toEqual(['0000000001']);
    await provider.cleanUp(launched.externalId);
    expect(open.cluster.list('namespaces').map(({ metadata }) => metadata.name)).toEqual(['default', 'kube-system']);
  });

  it('waits until the rights of the account in a new project take effect', async () => {
    await start('openshift', { type: 'project', image: 'unused' });
    const message = 'serviceaccounts is forbidden: User "provisioner" cannot create resource "serviceaccounts"';
    const fault = { kind: 'status', status: 403, body: { message } } as const;
    open.cluster.faults.add({ on: 'serviceaccounts.create', times: 2, fault });
    await provider.launch();
  });

  it('deletes a node whose project no longer exists, which the cluster answers with 403', async () => {
    await start('openshift', { type: 'project', image: 'unused' });
    const { externalId } = await provider.launch();
    open.cluster.remove('namespaces', lastProject());
    await provider.cleanUp(externalId);
  });

  it('does not take 403 for a deletion while the project is listed', async () => {
    await start('openshift', { type: 'project', image: 'unused' });
    const { externalId } = await provider.launch();
    open.cluster.remove('rolebindings', 'admin', lastProject());
    const deadline = provider.call(60_000).deadline;
    const deletion = provider.beginCleanUp(externalId, '0000000001', { deadline });
    await expect(provider.end(deletion)).rejects.toThrow(/cannot get resource "projects"/);
    expect(open.cluster.list('namespaces')).toHaveLength(3);
  });

  it('searches for a project whose creation did not reach the cluster', async () => {
    await start('openshift', { type: 'project', image: 'unused' });
    open.cluster.faults.add({ on: 'projectrequests.create', fault: { kind: 'cut', when: 'before' } });
    expect(await provider.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
  });

  it('fails with quota if the account may not create more projects', async () => {
    await start('openshift', { type: 'project', image: 'unused' });
    open.cluster.projects.limit = 1;
    await provider.launch('0000000001');
    expect(await provider.failedLaunch('0000000002')).toMatchObject({ code: 'quota', outcome: 'not-applied' });
  });
});

describe('the deletion of a node of another program', () => {
  it('deletes the namespace in the record if it has no tags', async () => {
    await start('kubernetes');
    const namespace = { apiVersion: 'v1', kind: 'Namespace', status: { phase: 'Active' } };
    open.cluster.add('namespaces', namespace, 'main-0000000007');
    await provider.cleanUp('main-0000000007', '0000000007');
    expect(open.cluster.list('namespaces')).toHaveLength(2);
  });

  it('refuses to delete a namespace with the tags of another provider', async () => {
    await start('kubernetes');
    const metadata = { labels: { nodepool_provider_name: 'other' } };
    open.cluster.add('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata }, 'main-0000000007');
    const deletion = provider.beginCleanUp('main-0000000007', '0000000007', {
      deadline: provider.call(60_000).deadline,
    });
    await expect(provider.end(deletion)).rejects.toThrow(/belongs to provider other/);
    expect(open.cluster.list('namespaces')).toHaveLength(3);
  });
});
