/** Objects that inherit our labels or description and belong to other people. */

import { expect, it } from '@jest/globals';
import { TestProvider } from '@nodepool/driver-kit';
import type { SimulatedKubernetes } from '@nodepool/simulated-kubernetes';
import { kubernetesDriver, type Flavour } from '../src/index.js';
import { openCluster, POOL, section } from './cluster.js';

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
