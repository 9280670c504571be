/** Answers of a proxy in place of the cluster, with status 200 and JSON that is none of the Kubernetes API. */

import { afterEach, expect, it } from '@jest/globals';
import { sleep, type JsonObject } from '@nodepool/core';
import { TestProvider } from '@nodepool/driver-kit';
import { kubernetesDriver, type Flavour } from '../src/index.js';
import { openCluster, section, type OpenCluster } from './cluster.js';

let open: OpenCluster;
let provider: TestProvider;

async function start(flavour: Flavour = 'kubernetes'): Promise<void> {
  open = await openCluster(flavour);
  const { time, environment } = open;
  const driver = kubernetesDriver(flavour, environment);
  provider = new TestProvider({ time, driver, section: section(flavour) });
  await provider.start();
}

afterEach(async () => {
  await provider.stop();
  await open.cluster.close();
});

const pass = (ms: number): Promise<void> => provider.end(sleep(open.time.clock, ms));
const namesOf = (plural: string): string[] => open.cluster.list(plural).map(({ metadata }) => metadata.name);

function answers(on: string, json: JsonObject = { message: 'sign in' }, times = 1): { remove(): void } {
  const fault = { kind: 'proxy', status: 200, json } as const;
  return open.cluster.faults.add({ on, fault, times });
}

it.each([
  ['an object', { message: 'sign in' }],
  ['a list without items', { kind: 'NamespaceList', apiVersion: 'v1', metadata: { resourceVersion: '1' } }],
  ['a list of another kind', { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [] }],
])('%s is not an empty list', async (_case, body) => {
  await start();
  const { externalId } = await provider.launch();
  const rule = answers('namespaces.list', body, Infinity);
  open.cluster.compact();
  open.cluster.add('namespaces', { apiVersion: 'v1', kind: 'Namespace' }, 'another');
  open.cluster.compact();
  open.cluster.watches.drop();
  await pass(5000);
  const listed = provider.end(provider.provider.listNodes(provider.call()));
  await expect(listed).rejects.toMatchObject({ code: 'transient', outcome: 'not-applied' });
  await expect(listed).rejects.toThrow(/list namespaces: the answer is not one of the Kubernetes API; does a proxy/);
  rule.remove();
  await pass(120_000);
  const now = await provider.end(provider.provider.listNodes(provider.call()));
  expect(now.map((instance) => instance.externalId)).toEqual([externalId]);
});

it('a list of projects whose items are null is empty', async () => {
  await start('openshift');
  open.cluster.watches.end();
  await pass(60_000);
  expect(await provider.end(provider.provider.listNodes(provider.call()))).toEqual([]);
});

it.each(['namespaces.get', 'namespaces.delete'])('a deletion does not end with the answer to %s', async (operation) => {
  await start();
  const { externalId } = await provider.launch();
  answers(operation);
  await provider.cleanUp(externalId);
  expect(namesOf('namespaces')).not.toContain(externalId);
});

it('a cleanup round does not count the answer to a deletion as a deletion', async () => {
  await start();
  const { externalId } = await provider.launch();
  answers('namespaces.delete');
  await expect(provider.cleanUpRound(() => true)).rejects.toMatchObject({ code: 'transient', outcome: 'unknown' });
  expect(namesOf('namespaces')).toContain(externalId);
});

it('the answer to the creation of the namespace is not a namespace', async () => {
  await start();
  answers('namespaces.create');
  expect(await provider.failedLaunch()).toMatchObject({ code: 'transient', outcome: 'not-applied' });
});

it('an object in the namespace is created again after the answer', async () => {
  await start();
  answers('rolebindings.create');
  await provider.launch();
  expect(namesOf('rolebindings')).toEqual(['zuul-role']);
});

it('the answer to a watch contains no events', async () => {
  await start();
  answers('namespaces.watch', {}, Infinity);
  open.cluster.watches.drop();
  await pass(5000);
  await expect(provider.end(provider.provider.listNodes(provider.call()))).rejects.toThrow(
    /watch namespaces: the answer is not one of the Kubernetes API/,
  );
});
