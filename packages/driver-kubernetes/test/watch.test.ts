/** Watches: what a provider does when the cluster ends, drops or forgets them, and how many calls that costs. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { sleep } from '@nodepool/core';
import { TestProvider } from '@nodepool/driver-kit';
import { kubernetesDriver } from '../src/index.js';
import { openCluster, section, type OpenCluster } from './cluster.js';

let open: OpenCluster;
let provider: TestProvider;

beforeEach(async () => {
  open = await openCluster('kubernetes', { bootMs: 60_000, deleteMs: 5000 });
  const { time, environment } = open;
  const driver = kubernetesDriver('kubernetes', environment);
  provider = await new TestProvider({ time, driver, section: section('kubernetes') }).start();
});

afterEach(async () => {
  await provider.stop();
  await open.cluster.close();
});

const pass = (ms: number): Promise<void> => provider.end(sleep(open.time.clock, ms));

it('a launch and a deletion make ten calls, and watches report the state of the pod', async () => {
  const before = provider.apiCalls.length;
  const { externalId } = await provider.launch();
  await provider.cleanUp(externalId);
  const made = provider.apiCalls.slice(before).map(({ operation }) => operation);
  expect(made).toEqual([
    'namespaces.create',
    'serviceaccounts.create',
    'secrets.create',
    'roles.create',
    'rolebindings.create',
    'secrets.watch',
    'pods.create',
    'namespaces.get',
    'namespaces.delete',
    'namespaces.get',
  ]);
});

it('a dropped watch continues at its version, without a new list', async () => {
  const launch = provider.begin();
  await pass(10_000);
  open.cluster.watches.drop();
  await provider.end(launch);
  expect(provider.count('namespaces.list')).toBe(1);
  expect(provider.count('pods.list')).toBe(1);
});

it('a watch from an expired version causes one new list', async () => {
  const launch = provider.begin();
  await pass(10_000);
  open.cluster.watches.drop();
  open.cluster.compact();
  // The pod begins to run while the provider reads the list again.
  open.cluster.add('namespaces', { apiVersion: 'v1', kind: 'Namespace' }, 'another');
  open.cluster.compact();
  await provider.end(launch);
  expect(provider.count('pods.list')).toBe(2);
});

it('lists are not repeated at once while the cluster answers every watch with an expired version', async () => {
  open.cluster.faults.add({ on: 'pods.watch', fault: { kind: 'status', status: 410 }, times: Infinity });
  open.cluster.watches.drop();
  await pass(60_000);
  expect(provider.count('pods.list')).toBeLessThan(20);
});

it('events during a lost connection take effect after the reconnect', async () => {
  const { externalId } = await provider.launch();
  const rule = open.cluster.faults.add({ on: 'namespaces', fault: { kind: 'cut', when: 'before' }, times: Infinity });
  open.cluster.watches.drop();
  await pass(1000);
  if (typeof externalId === 'string') open.cluster.remove('namespaces', externalId);
  await pass(20_000);
  rule.remove();
  await pass(70_000);
  const listed = await provider.end(provider.provider.listNodes(provider.call()));
  expect(listed).toEqual([]);
});

it('a list fails while the cluster cannot be watched, instead of being outdated', async () => {
  open.cluster.faults.add({ on: 'namespaces', fault: { kind: 'cut', when: 'before' }, times: Infinity });
  open.cluster.watches.drop();
  await pass(5000);
  await expect(provider.end(provider.provider.listNodes(provider.call()))).rejects.toMatchObject({ code: 'transient' });
});

it('objects are listed again if the server has been silent for minutes', async () => {
  open.cluster.configure({ bookmarkMs: 3_600_000 });
  await pass(5000);
  open.cluster.watches.end();
  await pass(300_000);
  const lists = provider.count('namespaces.list');
  await provider.end(provider.provider.listNodes(provider.call()));
  expect(provider.count('namespaces.list')).toBe(lists + 1);
});

it('a list has the objects of all its pages', async () => {
  const nodes = ['0000000001', '0000000002', '0000000003'];
  for (const node of nodes) await provider.launch(node);
  open.cluster.configure({ pageLimit: 2 });
  open.cluster.compact();
  open.cluster.watches.drop();
  await pass(5000);
  const listed = await provider.end(provider.provider.listNodes(provider.call()));
  expect(listed.map(({ tags }) => tags.nodepool_node_id)).toEqual(nodes);
});

it('a launch succeeds after an outage of the cluster of one minute', async () => {
  const launch = provider.begin();
  await open.time.until(() => open.cluster.list('namespaces').length > 2, 60_000);
  const away = open.cluster.faults.add({ on: '*', fault: { kind: 'cut', when: 'before' }, times: Infinity });
  open.cluster.watches.drop();
  await pass(60_000);
  away.remove();
  expect((await provider.end(launch)).interfaceIp).toBe('pod');
});

it('events that arrive in several pieces take effect', async () => {
  open.cluster.configure({ splitEventsMs: 100 });
  open.cluster.watches.drop();
  await pass(5000);
  const watches = provider.count('namespaces.watch');
  const { externalId } = await provider.launch();
  await provider.cleanUp(externalId);
  expect(await provider.end(provider.provider.listNodes(provider.call()))).toEqual([]);
  expect(provider.count('namespaces.watch')).toBe(watches);
});
