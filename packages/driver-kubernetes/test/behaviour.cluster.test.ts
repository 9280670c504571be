/** Behaviour of the drivers on a cluster: simulated here, and real in `pnpm test:kubernetes`. */

import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { JsonObject, LaunchedInstance } from '@nodepool/core';
import { INSTALLATION, realTime, TestProvider } from '@nodepool/driver-kit';
import { kubernetesDriver, type Flavour } from '../src/index.js';
import { openAnyCluster, type AnyCluster } from './any-cluster.js';

const POOL = 'main';
/** Distinguishes the objects of this run from those of another one on the same cluster. */
const RUN = randomUUID().slice(0, 8);
const PROVIDER = `cluster-test-${RUN}`;
const PROJECT = `project-${RUN}`;

let cluster: AnyCluster;
const providers: TestProvider[] = [];
let lastNode = 0;

beforeAll(async () => {
  cluster = await openAnyCluster();
});

afterEach(async () => {
  for (const provider of providers.splice(0)) await provider.stop();
  const { body } = await cluster.call('GET', `/api/v1/namespaces?labelSelector=nodepool_provider_name%3D${PROVIDER}`);
  for (const { metadata } of body['items'] as readonly { metadata: { name: string } }[]) {
    await cluster.call('DELETE', `/api/v1/namespaces/${metadata.name}`);
  }
});

afterAll(async () => {
  await cluster.close();
});

function section(flavour: Flavour, label: JsonObject = {}, more: JsonObject = {}): JsonObject {
  const own = flavour === 'kubernetes' ? { type: 'pod' } : {};
  const labels = [{ name: 'fedora', image: 'docker.io/fedora:28', ...own, ...label }];
  const name = flavour === 'openshiftpods' ? PROJECT : POOL;
  return { name: PROVIDER, driver: flavour, context: 'admin', pools: [{ name, labels }], ...more };
}

async function provider(flavour: Flavour, label?: JsonObject, more?: JsonObject): Promise<TestProvider> {
  const options = {
    time: realTime(),
    driver: kubernetesDriver(flavour, cluster.environment),
    section: section(flavour, label, more),
  };
  const started = await new TestProvider(options).start();
  providers.push(started);
  return started;
}

function nodeId(): string {
  lastNode += 1;
  return String(lastNode).padStart(10, '0');
}

/** Tags of an attempt with a valid id. */
function tagsOf(node: string, by: TestProvider): ReturnType<TestProvider['tagsOf']> {
  return by.tagsOf(node, randomUUID().replaceAll('-', ''));
}

/** Returns a value that must be a text. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new TypeError(`${JSON.stringify(value)} is not a text`);
}

function portOf({ connection }: LaunchedInstance): JsonObject {
  return connection?.port as JsonObject;
}

async function exists(namespace: string): Promise<boolean> {
  return (await cluster.call('GET', `/api/v1/namespaces/${namespace}`)).status === 200;
}

async function statusOf(path: string, token: string): Promise<number> {
  return (await cluster.call('GET', path, undefined, token)).status;
}

describe('a node of type namespace', () => {
  it('has the connection data that Zuul reads, and a token for its namespace only', async () => {
    const started = await provider('kubernetes', { type: 'namespace', image: 'unused' });
    const node = nodeId();
    const launched = await started.launch(node, { tags: tagsOf(node, started) });
    const port = portOf(launched);
    const namespace = textOf(port['namespace']);
    expect(launched).toMatchObject({ externalId: namespace, connection: { type: 'namespace' }, cloud: 'admin' });
    expect(launched.interfaceIp).toBeUndefined();
    expect(Object.keys(port).sort()).toEqual(['ca_crt', 'host', 'name', 'namespace', 'skiptls', 'token', 'user']);
    expect(port).toMatchObject({ name: namespace, skiptls: false, user: 'zuul-worker' });
    expect(textOf(port['host'])).toMatch(/^https?:\/\/127\.0\.0\.1:\d+$/);
    expect(Buffer.from(textOf(port['ca_crt']), 'base64').toString()).toContain('BEGIN CERTIFICATE');
    expect(namespace).toMatch(new RegExp(`^main-${node}-n[0-9a-f]{10}$`));

    const token = textOf(port['token']);
    expect(await statusOf(`/api/v1/namespaces/${namespace}/pods`, token)).toBe(200);
    expect(await statusOf(`/api/v1/namespaces/${namespace}/configmaps`, token)).toBe(200);
    expect(await statusOf('/api/v1/namespaces/default/pods', token)).toBe(403);
    expect(await statusOf('/api/v1/namespaces', token)).toBe(403);
    expect(await statusOf(`/api/v1/namespaces/${namespace}/resourcequotas`, token)).toBe(403);

    await started.cleanUp(namespace, node);
    expect(await exists(namespace)).toBe(false);
    // A real server may still remember the token for some seconds.
    expect([401, 403]).toContain(await statusOf('/api/v1/namespaces/default/pods', token));
  });
});

describe('a node of type pod', () => {
  it('is ready when its pod runs, and its token cannot replace the pod', async () => {
    const started = await provider('kubernetes', {
      cpu: 2,
      memory: 64,
      storage: 5,
      labels: { environment: 'ci' },
      'dynamic-labels': { tenant: '{request.tenant_name} of {request.id}' },
      annotations: { note: 'any text' },
      env: [{ name: 'A', value: 'b' }],
      'node-selector': { disk: 'fast' },
      privileged: true,
      volumes: [{ name: 'data', emptyDir: {} }],
      'volume-mounts': [{ name: 'data', mountPath: '/data' }],
    });
    const node = nodeId();
    const launched = await started.launch(node, { tags: tagsOf(node, started) });
    const port = portOf(launched);
    const namespace = textOf(port['namespace']);
    expect(launched).toMatchObject({
      connection: { type: 'kubectl' },
      interfaceIp: 'fedora',
      hostId: 'node-1',
      resources: { instances: 1, cores: 2, ram: 64, 'ephemeral-storage': 5 },
    });
    expect(port['pod']).toBe('fedora');

    const { body: pod } = await cluster.call('GET', `/api/v1/namespaces/${namespace}/pods/fedora`);
    expect(pod['metadata']).toMatchObject({
      labels: { environment: 'ci', tenant: 'acme-of-200-0000000001', nodepool_node_id: node },
      annotations: { note: 'any text' },
    });
    expect(pod['spec']).toMatchObject({
      nodeSelector: { disk: 'fast' },
      containers: [
        {
          name: 'fedora',
          image: 'docker.io/fedora:28',
          imagePullPolicy: 'IfNotPresent',
          command: ['/bin/sh', '-c'],
          args: ['while true; do sleep 30; done;'],
          resources: {
            requests: { cpu: '2', memory: '64Mi', 'ephemeral-storage': '5M' },
            limits: { cpu: '2', memory: '64Mi', 'ephemeral-storage': '5M' },
          },
        },
      ],
    });
    const token = textOf(port['token']);
    expect(await statusOf(`/api/v1/namespaces/${namespace}/pods`, token)).toBe(200);
    const replaced = await cluster.call('DELETE', `/api/v1/namespaces/${namespace}/pods/fedora`, undefined, token);
    expect(replaced.status).toBe(403);
    expect(await statusOf(`/api/v1/namespaces/${namespace}/secrets`, token)).toBe(403);
  });

  it('is found if another process resumes its launch', async () => {
    const first = await provider('kubernetes');
    const node = nodeId();
    const tags = tagsOf(node, first);
    const launched = await first.launch(node, { tags });
    const second = await provider('kubernetes');
    const resumed = await second.launch(node, { tags, saved: { state: 'interrupted' } });
    expect(resumed.externalId).toBe(launched.externalId);
    expect(portOf(resumed)).toEqual(portOf(launched));
    const selector = `labelSelector=nodepool_node_id%3D${node},nodepool_provider_name%3D${PROVIDER}`;
    const { body } = await cluster.call('GET', `/api/v1/namespaces?${selector}`);
    expect(body['items']).toHaveLength(1);
  });

  it('fails to launch if its namespace belongs to another owner, and does not delete it', async () => {
    const started = await provider('kubernetes');
    const node = nodeId();
    const tags = tagsOf(node, started);
    const { externalId } = await started.launch(node, { tags });
    const name = textOf(externalId);
    await started.cleanUp(externalId, node);
    const labels = { ...tags, nodepool_installation: 'fedcba9876543210' };
    await cluster.call('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels },
    });
    const launch = started.begin(node, { tags, saved: { state: 'interrupted' } });
    await expect(launch).rejects.toThrow(/another owner/);
    await started.cleanUp(null, node);
    expect(await exists(name)).toBe(true);
  });

  it.each([
    ['missing', 'refused', /ImagePullBackOff.*not found/],
    ['evicted', 'instance-failed', /Evicted.*low on resource/],
    ['broken', 'instance-failed', /CrashLoopBackOff/],
    ['huge', 'capacity', /Unschedulable.*Insufficient cpu/],
  ])("fails to launch the image %s with the cluster's reason", async (image, code, message) => {
    const started = await provider('kubernetes', { image: `docker.io/${image}:1` }, { 'launch-timeout': 3 });
    const node = nodeId();
    const error = await started.failedLaunch(node, { tags: tagsOf(node, started) });
    expect([error.code, error.outcome]).toEqual([code, 'applied']);
    expect(error.message).toMatch(message);
  });

  it('is not launched while the cluster is unreachable, and is deleted once it is reachable again', async () => {
    const started = await provider('kubernetes');
    const node = nodeId();
    await cluster.cut();
    const failure = await started.failedLaunch(node, { tags: tagsOf(node, started) });
    expect(failure).toMatchObject({ code: 'transient', outcome: 'not-applied' });
    await cluster.restore();
    const { externalId } = await started.launch(node, { tags: tagsOf(node, started) });
    await cluster.cut();
    const deletion = started.beginCleanUp(externalId, node);
    await started.end(new Promise((resolve) => setTimeout(resolve, 500)));
    await cluster.restore();
    await started.end(deletion);
    expect(await exists(textOf(externalId))).toBe(false);
  });
});

describe('leaked namespaces', () => {
  it('are found by their labels, and namespaces with other labels are not deleted', async () => {
    const started = await provider('kubernetes', { type: 'namespace', image: 'unused' });
    const node = nodeId();
    const tags = tagsOf(node, started);
    const { externalId } = await started.launch(node, { tags });
    const others: readonly (readonly [string, JsonObject])[] = [
      ['another installation', { ...tags, nodepool_installation: 'fedcba9876543210' }],
      ['another provider', { ...tags, nodepool_provider_name: `other-${RUN}` }],
      ['nothing', {}],
    ];
    const names: string[] = [];
    for (const [index, [, labels]] of others.entries()) {
      const name = `main-${node}-${RUN}${index}`;
      const metadata = { name, labels };
      const { status } = await cluster.call('POST', '/api/v1/namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata,
      });
      expect(status).toBe(201);
      names.push(name);
    }
    const isLeaked = ({ tags: found }: { readonly tags: Readonly<Record<string, string>> }): boolean =>
      found['nodepool_installation'] === INSTALLATION && found['nodepool_node_id'] === node;
    const offered = await started.cleanUpRound(isLeaked);
    const ofNode = offered.filter(({ tags: found }) => found['nodepool_node_id'] === node);
    expect(ofNode.map(({ name }) => name).sort()).toEqual([textOf(externalId), names[0]].sort());
    await started.cleanUp(externalId, node);
    expect(await exists(textOf(externalId))).toBe(false);
    for (const name of names) expect(await exists(name)).toBe(true);
    for (const name of names) await cluster.call('DELETE', `/api/v1/namespaces/${name}`);
  });
});

describe('pods in an existing project', () => {
  it('have the credentials of the context, and count against the quota of the project', async () => {
    await cluster.call('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: PROJECT },
    });
    await cluster.call('POST', `/api/v1/namespaces/${PROJECT}/resourcequotas`, {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'small' },
      spec: { hard: { pods: '1' } },
    });
    const started = await provider('openshiftpods', {}, { 'max-pods': 5 });
    const limits = await started.provider.getQuotaLimits?.(started.call());
    expect(limits?.toResources()).toEqual({ instances: 1 });

    const node = nodeId();
    const launched = await started.launch(node, { tags: tagsOf(node, started) });
    const port = portOf(launched);
    const pod = textOf(port['pod']);
    expect(launched).toMatchObject({
      externalId: `${PROJECT}-${pod}`,
      interfaceIp: pod,
      hostId: 'node-1',
      connection: { type: 'kubectl' },
    });
    expect(port).toMatchObject({ namespace: PROJECT, token: 'admin-token', user: 'zuul-worker', skiptls: false });
    expect(Object.keys(port).sort()).toEqual(['ca_crt', 'host', 'namespace', 'pod', 'skiptls', 'token', 'user']);

    const refused = nodeId();
    const error = await started.failedLaunch(refused, { tags: tagsOf(refused, started) });
    expect([error.code, error.outcome]).toEqual(['quota', 'not-applied']);
    expect(error.message).toContain('exceeded quota: small');

    await started.cleanUp(launched.externalId, node);
    expect((await cluster.call('GET', `/api/v1/namespaces/${PROJECT}/pods/${pod}`)).status).toBe(404);
    await cluster.call('DELETE', `/api/v1/namespaces/${PROJECT}`);
  });
});

describe('a provider', () => {
  it('reports a missing permission to list namespaces at its start', async () => {
    const options = {
      time: realTime(),
      driver: kubernetesDriver('kubernetes', cluster.environment),
      section: { ...section('kubernetes'), context: 'limited' },
    };
    const limited = new TestProvider(options);
    await expect(limited.start()).rejects.toMatchObject({
      code: 'auth',
      message: expect.stringMatching(/cannot list/),
    });
    await limited.stop();
  });
});
