/**
 * Launchers of both implementations on one ensemble, each with nodes on backing nodes, and a provider of such nodes
 * that moves from one to the other and back. `pnpm scenario:mixed` runs it if `NODEPOOL_PYTHON` names the folder of the
 * source of the Python Nodepool.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Program } from '@nodepool/harness';
import { openRequestor, type Requestor } from '@nodepool/requestor';
import { sleep, systemClock } from '@nodepool/zookeeper';
import { fakeCloud, PYTHON_SOURCE, startPythonLauncher } from './python-launcher.js';
import { Site, type LauncherSetup } from './site.js';
import { SlotObserver, type SlotRecord } from './slot-observer.js';

/** Requests by provider: those at the same time, and the number of each of them. */
const REQUESTS = { 'our-slots': { parallel: 20, each: 10 }, 'their-slots': { parallel: 8, each: 5 } };
/** Time for which a node is used (ms). */
const HOLD_MS = 300;
const SLOTS = 4;
const TIMEOUT_MS = 900_000;
const POOLS = '/nodepool/components/pool';
const POLL_MS = 200;
/** Time between two kills (ms). */
const PAUSE_MS = 5000;

let site: Site;
let folder: string;
let endpoint: string;
let requestor: Requestor;
const pythons: Program[] = [];

(PYTHON_SOURCE === undefined ? describe.skip : describe)('nodes on backing nodes, with both implementations,', () => {
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-mixed-'));
    // The Python Nodepool requires TLS.
    site = await Site.start({ tls: true });
    endpoint = await site.cloud(['boot-time=[0.2,1]']);
    requestor = openRequestor(site.zooKeeper, { name: 'zuul' });
  }, TIMEOUT_MS);

  afterEach(async () => {
    await requestor.close();
    await Promise.all(pythons.splice(0).map((python) => python.kill()));
    await site.stop();
    rmSync(folder, { recursive: true });
  }, TIMEOUT_MS);

  function slots(name: string): object {
    const label = { name: 'debian', 'backing-label': 'big', 'max-parallel-jobs': SLOTS, 'grace-time': 5 };
    return { name, driver: 'metastatic', pools: [{ name: 'main', labels: [label] }] };
  }

  function ours(provider: string): LauncherSetup {
    const labels = ['fedora', 'big'].map((name) => ({ name, 'cloud-image': 'image' }));
    const pool = { name: 'main', 'host-key-checking': false, labels };
    const images = [{ name: 'image', username: 'zuul' }];
    const cloud = { name: 'ours', driver: 'example', endpoint, 'cloud-images': images, pools: [pool] };
    return { sections: [cloud, slots(provider)], labels: ['big'] };
  }

  async function python(
    name: string,
    provider: string,
    cloud: readonly object[] = [fakeCloud(['big'])],
  ): Promise<Program> {
    const place = { name, folder, logs: site.folder, zooKeeper: site.address };
    const program = await startPythonLauncher({
      ...place,
      labels: ['debian', 'big'],
      providers: [...cloud, slots(provider)],
    });
    pythons.push(program);
    await program.while('registers its pool', TIMEOUT_MS, (signal) => registered(provider, signal));
    return program;
  }

  /** Resolves once a pool of the provider is registered: the provider of a request is only a preference. */
  async function registered(provider: string, signal: AbortSignal): Promise<void> {
    const isRegistered = async (name: string): Promise<boolean> => {
      const { data } = await site.zooKeeper.get(`${POOLS}/${name}`, { signal });
      const record = JSON.parse(new TextDecoder().decode(data)) as { readonly provider_name?: string };
      return record.provider_name === provider;
    };
    for (;;) {
      const isThere = (await site.zooKeeper.exists(POOLS, { signal })) !== undefined;
      const { children } = isThere ? await site.zooKeeper.children(POOLS, { signal }) : { children: [] };
      if ((await Promise.all(children.map(isRegistered))).includes(true)) return;
      await sleep(systemClock, POLL_MS, signal);
    }
  }

  it(
    'serve requests of one provider each, while launchers are killed',
    async () => {
      const launchers = [await site.launcher(ours('our-slots')), await site.launcher(ours('our-slots'))];
      await python('python-1', 'their-slots');
      const observer = new SlotObserver(site.zooKeeper, slotOf);
      const served: string[] = [];
      const providers = new Set<string | null>();
      const work = async (provider: string, count: number): Promise<void> => {
        for (let done = 0; done < count; done += 1) {
          const lease = await requestor.acquire({ labels: ['debian'], provider }, { timeoutMs: TIMEOUT_MS });
          served.push(...lease.nodes.map(({ id }) => id));
          for (const { provider: by } of lease.nodes) providers.add(by);
          await sleep(systemClock, HOLD_MS);
          await lease.return();
        }
      };
      const workers = Object.entries(REQUESTS).flatMap(([provider, { parallel, each }]) =>
        Array.from({ length: parallel }, () => work(provider, each)),
      );
      const results = Promise.all(workers);
      for (let round = 0; ; round += 1) {
        const isOver = await Promise.race([results.then(() => true), sleep(systemClock, PAUSE_MS).then(() => false)]);
        if (isOver) break;
        await launchers[round % 2]?.kill();
        launchers[round % 2] = await site.launcher(ours('our-slots'));
      }
      await observer.stop();
      expect(observer.problems).toEqual([]);
      expect([...providers].sort()).toEqual(Object.keys(REQUESTS).sort());
      expect(new Set(served).size).toBe(served.length);
    },
    TIMEOUT_MS,
  );

  it(
    'have the same records: a provider moves from the Python launcher to ours and back while its nodes are in use',
    async () => {
      const backing = await python('python-backing', 'unused', [fakeCloud(['big'])]);
      let theirs = await python('python-1', 'slots', []);
      const first = await requestor.acquire({ labels: ['debian'], provider: 'slots' }, { timeoutMs: 120_000 });
      await theirs.stop();
      const launcher = await site.launcher(ours('slots'));
      const second = await requestor.acquire({ labels: ['debian'], provider: 'slots' }, { timeoutMs: 120_000 });
      await launcher.stop();
      theirs = await python('python-2', 'slots', []);
      const third = await requestor.acquire({ labels: ['debian'], provider: 'slots' }, { timeoutMs: 120_000 });

      const places = [first, second, third].map(({ nodes }) => placeOf(observed(nodes[0]?.id ?? '')));
      const [[backingNode] = []] = await Promise.all(places);
      expect(await Promise.all(places)).toEqual([
        [backingNode, 0],
        [backingNode, 1],
        [backingNode, 2],
      ]);
      await Promise.all([first, second, third].map((lease) => lease.return()));
      await theirs.while('deletes the nodes', TIMEOUT_MS, async (signal) => {
        await Promise.all([first, second, third].map((lease) => lease.deleted({ signal })));
      });
      await theirs.stop();
      await backing.stop();
    },
    TIMEOUT_MS,
  );

  async function observed(id: string): Promise<SlotRecord> {
    const { data } = await site.zooKeeper.get(`/nodepool/nodes/${id}`);
    return JSON.parse(new TextDecoder().decode(data)) as SlotRecord;
  }
});

async function placeOf(record: Promise<SlotRecord>): Promise<readonly unknown[]> {
  const { driver_data: data } = await record;
  return [data?.backing_node, data?.slot];
}

/** Returns the slot of a node on a backing node. */
function slotOf({ driver_data: data }: SlotRecord): string | undefined {
  return data?.backing_node === undefined ? undefined : `slot ${data.slot ?? 'nothing'} of ${data.backing_node}`;
}
