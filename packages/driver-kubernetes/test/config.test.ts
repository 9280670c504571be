/** Configuration: defaults and inheritance as in the Python Nodepool, and the pods that follow from them. */

import { expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { podBody } from '../src/bodies.js';
import { loadProvider, type KubernetesLabel, type KubernetesProvider } from '../src/config.js';
import type { Flavour } from '../src/index.js';
import { needOf } from '../src/quota.js';

function load(flavour: Flavour, section: JsonObject): { config: KubernetesProvider; problems: string[] } {
  const problems: string[] = [];
  const config = loadProvider(flavour, section, {
    diskImages: new Map(),
    labels: new Set(),
    problem: (path, { expected }) => problems.push(`${path.join('.')}: ${expected}`),
  });
  return { config, problems };
}

function section(pool: JsonObject, more: JsonObject = {}): JsonObject {
  return { name: 'p', driver: 'kubernetes', pools: [{ name: 'main', ...pool }], ...more };
}

function label(config: KubernetesProvider, name: string): KubernetesLabel {
  const found = config.pools.get('main')?.labels.get(name);
  if (found === undefined) throw new Error(`there is no label ${name}`);
  return found;
}

function resources(found: KubernetesLabel): unknown {
  const body = podBody('pod', found, {}) as { spec: { containers: readonly { resources?: unknown }[] } };
  return body.spec.containers[0]?.resources;
}

it('requests are those of the label or the pool; limits are those of the label, the pool, or the requests', () => {
  const { config, problems } = load(
    'kubernetes',
    section({
      'default-label-cpu': 2,
      'default-label-memory': 1024,
      'default-label-storage': 10,
      'default-label-cpu-limit': 8,
      'default-label-memory-limit': 4196,
      labels: [
        { name: 'default', type: 'pod', image: 'i' },
        { name: 'own', type: 'pod', image: 'i', cpu: 4, memory: 2048, storage: 20, 'cpu-limit': 16 },
      ],
    }),
  );
  expect(problems).toEqual([]);
  expect(resources(label(config, 'default'))).toEqual({
    requests: { cpu: '2', memory: '1024Mi', 'ephemeral-storage': '10M' },
    limits: { cpu: '8', memory: '4196Mi', 'ephemeral-storage': '10M' },
  });
  expect(resources(label(config, 'own'))).toEqual({
    requests: { cpu: '4', memory: '2048Mi', 'ephemeral-storage': '20M' },
    limits: { cpu: '16', memory: '4196Mi', 'ephemeral-storage': '20M' },
  });
  expect(needOf(label(config, 'own')).toResources()).toEqual({
    instances: 1,
    cores: 4,
    ram: 2048,
    'ephemeral-storage': 20,
  });
});

it('a label without amounts has no requests, and a GPU has equal requests and limits', () => {
  const labels = [
    { name: 'plain', type: 'pod', image: 'i' },
    { name: 'gpu', type: 'pod', image: 'i', gpu: 0.5, 'gpu-resource': 'gpu-vendor.example/gpu' },
  ];
  const { config } = load('kubernetes', section({ labels }));
  expect(resources(label(config, 'plain'))).toBeUndefined();
  expect(resources(label(config, 'gpu'))).toEqual({
    requests: { 'gpu-vendor.example/gpu': '0.50' },
    limits: { 'gpu-vendor.example/gpu': '0.50' },
  });
  expect(needOf(label(config, 'gpu')).get('gpu-vendor.example/gpu')).toBe(0.5);
});

it('a pool inherits each limit of the provider that it does not set', () => {
  const labels = [{ name: 'l', type: 'namespace' }];
  const limits = { 'max-servers': 10, 'max-cores': 20, 'max-ram': 3000, 'max-resources': { a: 1, b: 2 } };
  const { config } = load('kubernetes', section({ labels, 'max-cores': 5, 'max-resources': { b: 7 } }, limits));
  expect(config.pools.get('main')).toMatchObject({ maxServers: 10, limits: { cores: 5, ram: 3000, a: 1, b: 7 } });
  expect(config).toMatchObject({ launchRetries: 3, launchTimeoutMs: 300_000 });
});

it('max-projects and max-pods are other names of max-servers', () => {
  const labels = [{ name: 'l', type: 'project' }];
  const projects = load('openshift', section({ labels }, { 'max-projects': 3, 'max-servers': 9 }));
  expect(projects.config.pools.get('main')?.maxServers).toBe(3);
  const pods = load('openshiftpods', section({ labels: [{ name: 'l', image: 'i' }] }, { 'max-pods': 4 }));
  expect(pods.config.pools.get('main')?.maxServers).toBe(4);
});

it('connection types and login settings have the values that Zuul expects', () => {
  const labels = (empty: string): readonly JsonObject[] => [
    { name: 'empty', type: empty, 'shell-type': 'csh' },
    { name: 'pod', type: 'pod', image: 'i', 'python-path': '/usr/bin/python3' },
  ];
  const types = (flavour: Flavour, empty: string): unknown[] => {
    const { config } = load(flavour, section({ labels: labels(empty) }));
    return ['empty', 'pod'].map((name) => {
      const { type, username, pythonPath, shellType } = label(config, name).connection;
      return [type, username, pythonPath, shellType];
    });
  };
  expect(types('kubernetes', 'namespace')).toEqual([
    ['namespace', null, 'auto', 'csh'],
    ['kubectl', null, '/usr/bin/python3', null],
  ]);
  expect(types('openshift', 'project')[0]).toEqual(['project', null, 'auto', 'csh']);
});

it('a pod has the specification of its label unchanged', () => {
  const spec = { containers: [{ name: 'custom', image: 'ubuntu:jammy', args: ['sleep', '1000'] }], hostNetwork: true };
  const labels = [{ name: 'custom', type: 'pod', spec, annotations: { a: 1 } }];
  const { config } = load('kubernetes', section({ labels, 'default-label-cpu': 2 }));
  expect(podBody('custom', label(config, 'custom'), { l: 'v' })).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'custom', labels: { l: 'v' }, annotations: { a: '1' } },
    spec,
  });
});

it('a label with a pod needs an image or a specification', () => {
  const { problems } = load('kubernetes', section({ labels: [{ name: 'l', type: 'pod' }] }));
  expect(problems).toEqual(['pools.0.labels.0: "image" or "spec" to be set for a label with a pod']);
});
