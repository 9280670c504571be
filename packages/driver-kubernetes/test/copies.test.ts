/** Objects that inherit our labels or description and belong to other people. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { TestProvider } from '@nodepool/driver-kit';
import type { SimulatedKubernetes } from '@nodepool/simulated-kubernetes';
import { kubernetesDriver, type Flavour } from '../src/index.js';
import { openCluster, POOL, section, type OpenCluster } from './cluster.js';

/** Creates objects with the labels and annotations of a node's object, and another name. */
function copyInstances({ list, add }: SimulatedKubernetes, flavour: Flavour): void {
  const plural = flavour === 'openshiftpods' ? 'pods' : 'namespaces';
  for (const { apiVersion = '', kind = '', metadata, spec = {}, status = {} } of list(plural)) {
    const { name, namespace, labels, annotations } = metadata;
    if (!name.includes('0000000001')) continue;
    const copied = { labels: { ...labels }, annotations: { ...annotations } };
    add(plural, { apiVersion, kind, metadata: copied, spec, status }, `copy-of-${name}`, namespace);
  }
}

function namesIn({ list }: SimulatedKubernetes, flavour: Flavour): readonly string[] {
  const objects = flavour === 'openshiftpods' ? list('pods', POOL) : list('namespaces');
  return objects.map(({ metadata }) => metadata.name).filter((name) => name.includes('0000000001'));
}

it.each<[Flavour, string]>([
  ['kubernetes', 'a namespace that a person restores under another name'],
  ['openshift', 'a project with the description of that of a node'],
  ['openshiftpods', 'a pod that a person copies with its labels'],
])('%s: %s survives the deletion of the node', async (flavour) => {
  const { time, cluster, environment } = await openCluster(flavour);
  const driver = kubernetesDriver(flavour, environment);
  const provider = await new TestProvider({ time, driver, section: section(flavour) }).start();
  try {
    const { externalId } = await provider.launch();
    copyInstances(cluster, flavour);
    const [, copy] = namesIn(cluster, flavour);
    expect(copy).toMatch(/^copy-of-/);
    expect(await provider.cleanUpRound()).toMatchObject([{ externalId }]);
    await provider.cleanUp(null);
    expect(await provider.cleanUpRound(() => true)).toEqual([]);
    expect(namesIn(cluster, flavour)).toEqual([copy]);
  } finally {
    await provider.stop();
    await cluster.close();
  }
});

describe('the deletion of a namespace', () => {
  let open: OpenCluster;
  let provider: TestProvider;
  let name: string;

  /** Launches a node, and makes another user change its namespace immediately before a later call. */
  async function changedBefore(operation: string, change: () => void): Promise<void> {
    open = await openCluster('kubernetes');
    const driver = kubernetesDriver('kubernetes', open.environment);
    provider = await new TestProvider({ time: open.time, driver, section: section('kubernetes') }).start();
    const { externalId } = await provider.launch();
    if (typeof externalId !== 'string') throw new TypeError('ids are texts');
    name = externalId;
    const on = (call: { readonly operation: string }): boolean => {
      if (call.operation !== operation) return false;
      change();
      return true;
    };
    open.cluster.faults.add({ on, fault: { kind: 'latency', ms: 0 } });
  }

  afterEach(async () => {
    await provider.stop();
    await open.cluster.close();
  });

  /** Replaces the namespace by one with the same name and labels. */
  function replace(): void {
    const { cluster } = open;
    const [found] = cluster.list('namespaces').filter(({ metadata }) => metadata.name === name);
    cluster.remove('namespaces', name);
    const { labels = {}, annotations = {} } = found?.metadata ?? {};
    const metadata = { labels: { ...labels }, annotations: { ...annotations } };
    cluster.add('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata, status: { phase: 'Active' } }, name);
  }

  /** Returns the names of the namespaces that are not being deleted. */
  const names = (): readonly string[] =>
    open.cluster
      .list('namespaces')
      .flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [metadata.name] : []));

  it('of a node does not affect a namespace that has replaced it', async () => {
    await changedBefore('namespaces.delete', replace);
    await provider.cleanUp(name);
    expect(names()).toContain(name);
  });

  it('that is leaked does not affect a namespace that has replaced it', async () => {
    await changedBefore('namespaces.delete', replace);
    await provider.cleanUpRound(() => true);
    expect(names()).toContain(name);
  });

  it('that is leaked is not made after its user has replaced its labels', async () => {
    await changedBefore('namespaces.get', () => open.cluster.setLabels('namespaces', name, { kept: 'by-its-user' }));
    await provider.cleanUpRound(() => true);
    expect(names()).toContain(name);
  });
});
