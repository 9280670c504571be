/** A namespace or pod that stays `Terminating`, e.g. with a dead node. */

import { afterEach, expect, it } from '@jest/globals';
import { sleep } from '@nodepool/core';
import { TestProvider } from '@nodepool/driver-kit';
import { kubernetesDriver, type Flavour } from '../src/index.js';
import { describeTermination } from '../src/termination.js';
import { NAMESPACES, objectOf } from '../src/client/objects.js';
import { openCluster, section, type OpenCluster } from './cluster.js';

let open: OpenCluster;
let provider: TestProvider;

async function start(flavour: Flavour): Promise<void> {
  open = await openCluster(flavour, { bootMs: 1000, deleteMs: 5000, isNodeDead: true });
  const driver = kubernetesDriver(flavour, open.environment);
  provider = await new TestProvider({ time: open.time, driver, section: section(flavour) }).start();
}

afterEach(async () => {
  await provider.stop();
  await open.cluster.close();
});

it.each<[Flavour, string, RegExp]>([
  ['kubernetes', 'namespaces', /^namespace main-.* since 2\S+Z: Some resources are remaining: pods\. has 1 resource/],
  ['openshift', 'projects', /^project main-.* since 2\S+Z: Some resources are remaining: pods/],
  ['openshiftpods', 'pods', /^pod pod-.* since 2\S+Z: the kubelet of node \S+ has not confirmed the end of the pod$/],
])(
  'of %s is deleted once, asked for again and again, and its obstacle is reported once',
  async (flavour, kind, text) => {
    await start(flavour);
    const { externalId } = await provider.launch();
    const reported: string[] = [];
    const cleanUp = provider.beginCleanUp(externalId, undefined, { onWaiting: (reason) => void reported.push(reason) });
    await provider.end(sleep(open.time.clock, 400_000));
    expect(reported).toEqual([expect.stringMatching(text)]);
    expect(provider.count(`${kind}.delete`, 'DELETE')).toBe(1);
    // At most every 30 s.
    expect(provider.count(`${kind}.get`)).toBeGreaterThan(8);
    expect(provider.count(`${kind}.get`)).toBeLessThan(25);
    open.cluster.configure({ isNodeDead: false });
    await provider.end(cleanUp);
  },
);

it('names the finalizers that remain', async () => {
  await start('kubernetes');
  const metadata = { name: 'n', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.org/a', 7] };
  expect(describeTermination(NAMESPACES, objectOf({ metadata }))).toBe(
    'namespace n has been Terminating since 2026-01-01T00:00:00Z: finalizers example.org/a remain',
  );
});
