/** A launcher whose Kubernetes cluster has lost a node: the pods of that node stay `Terminating`. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { loadConfig } from '@nodepool/config';
import { silentLogger, TaskSupervisor, type LogFields, type Logger } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { simulatedTime } from '@nodepool/driver-kit';
import { kubernetesDriver } from '@nodepool/driver-kubernetes';
import { Launcher } from '@nodepool/launcher';
import { openRequestor } from '@nodepool/requestor';
import { startSimulatedKubernetes, type SimulatedKubernetes } from '@nodepool/simulated-kubernetes';
import { openStore, type Store } from '@nodepool/store';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runJob } from '../src/job.js';
import { LABEL, mainPool } from '../src/matrix/target.js';

const { clock, until } = simulatedTime();
const random = seededRandom(1);
let cluster: SimulatedKubernetes;
let server: SimulatedZooKeeperServer;
let store: Store;
let launcher: Launcher;
let warnings: (readonly [string, LogFields | undefined])[];
let failures: unknown[];

async function run<T>(work: Promise<T>): Promise<T> {
  const ended = { value: false };
  const settled = work.finally(() => (ended.value = true));
  settled.catch(() => undefined);
  await until(() => ended.value, 300_000);
  return settled;
}

beforeEach(async () => {
  cluster = await startSimulatedKubernetes({ clock, random, settings: { bootMs: 10_000, deleteMs: 2000 } });
  server = new SimulatedZooKeeperServer({ clock });
  warnings = [];
  failures = [];
  const log: Logger = {
    ...silentLogger,
    ...{ with: () => log, named: () => log },
    warn: (message, fields) => void warnings.push([message, fields]),
  };
  store = openStore(server.connect({ clock, random }), { clock, random, identifier: 'launcher', log });
  const tasks = new TaskSupervisor(clock, (_task, error) => void failures.push(error));
  const scanner = { scan: () => Promise.resolve([]) };
  launcher = new Launcher({ store, clock, random, log, tasks, scanner, hostname: 'launcher', version: '0.0.0' });
  store.start();
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-dead-node-'));
  const file = join(folder, 'nodepool.yaml');
  const label = { type: 'pod', image: 'docker.io/fedora:28', cpu: 2, memory: 1024 };
  const provider = { name: 'cluster', driver: 'kubernetes', context: 'admin' };
  const config = {
    'zookeeper-servers': [{ host: 'localhost' }],
    labels: [{ name: LABEL }],
    providers: [{ ...provider, pools: [mainPool(label, { 'max-servers': 2 })] }],
  };
  await writeFile(file, JSON.stringify(config));
  const env = { KUBECONFIG: cluster.kubeconfig };
  const driver = kubernetesDriver('kubernetes', { env, home: '/', serviceAccount: '/' });
  const loaded = await loadConfig({ file, env: {}, discoverDriver: () => Promise.resolve(driver) });
  await rm(folder, { recursive: true });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  launcher.start(loaded.config).catch((error: unknown) => failures.push(error));
  await until(() => launcher.ready, 300_000);
});

afterEach(async () => {
  await run(launcher.stop());
  server.stop();
  await run(cluster.close());
  expect(failures).toEqual([]);
});

/** Returns the namespaces of nodes. */
function ofNodes(): ReturnType<SimulatedKubernetes['list']> {
  return cluster.list('namespaces').filter(({ metadata }) => metadata.name.startsWith('main-'));
}

it('their namespaces are reported once, and count for five minutes', async () => {
  const requestor = openRequestor(server.connect({ clock, random }), {
    ...{ name: 'zuul', clock, random, log: silentLogger },
  });
  const waits: (number | undefined)[] = [];
  const submit = (): void => {
    runJob({ requestor, clock, label: LABEL, durationMs: 1000 }, ({ waitMs }) => waits.push(waitMs)).catch(
      (error: unknown) => failures.push(error),
    );
  };
  submit();
  submit();
  await until(() => waits.length === 2, 60_000);
  cluster.configure({ isNodeDead: true });
  await until(() => [...store.nodes.inState('deleting')].length === 2, 60_000);
  const lost = new Set(ofNodes().map(({ metadata }) => metadata.uid));
  submit();
  await until(() => waits.length === 3, 600_000);
  // The limit of two nodes is full for five minutes.
  expect(waits[2]).toBeGreaterThan(290_000);
  expect(waits[2]).toBeLessThan(330_000);
  const stuck = warnings.filter(([message]) => message === 'The deletion of a node is stuck');
  expect(stuck).toMatchObject([[expect.anything(), { reason: expect.stringMatching(/Terminating .* pods\. has 1/) }]]);
  expect(ofNodes().filter(({ metadata }) => lost.has(metadata.uid))).toHaveLength(2);
  cluster.configure({ isNodeDead: false });
  await until(() => ofNodes().length === 0 && [...store.nodes.all()].length === 0, 120_000);
  expect(warnings.at(-1)?.[0]).toBe('No deletion is stuck any more');
});
