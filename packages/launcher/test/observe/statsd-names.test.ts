/** Tests that our statsd metrics have the names that were recorded from a launcher of the Python Nodepool. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { EventLoopMonitor, MetricsRegistry, reportProcess } from '@nodepool/daemon';
import { silentLogger } from '@nodepool/core';
import type { StatsdSender } from '@nodepool/daemon';
import { LEAKED_RESOURCES } from '../../src/index.js';
import { NodeTally } from '@nodepool/status';
import { EnsembleMetrics } from '../../src/metrics/ensemble-metrics.js';
import { LAUNCHES } from '../../src/metrics/launcher-metrics.js';
import { reportQueues } from '../../src/metrics/queue-metrics.js';
import { World, pool, provider } from '../support/world.js';

const INTERVAL_MS = 10_000;
/** The label in the recording; the label of this test contains a dot, as operators' labels do. */
const RECORDED_LABEL = 'small';
const LABEL = 'ubuntu-22.04';
const RECORDING = join(__dirname, 'recorded', 'statsd-metrics.txt');

/** Collects metric names with their types in the statsd format, e.g. `nodepool.launch.ready|ms`. */
class Names implements StatsdSender {
  readonly sent = new Set<string>();
  increment(key: string): void {
    this.sent.add(`${key}|c`);
  }
  timing(key: string): void {
    this.sent.add(`${key}|ms`);
  }
  gauge(key: string): void {
    this.sent.add(`${key}|g`);
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
}

let world: World;
let statsd: Names;
let metrics: MetricsRegistry;

beforeEach(() => {
  world = new World();
  world.cloud.configure({ zones: ['az1', 'az2'] });
  statsd = new Names();
  metrics = new MetricsRegistry({
    clock: world.clock,
    statsd,
    prometheus: undefined,
    onError: (error) => {
      throw error;
    },
  });
  world.observation = { metrics };
});

afterEach(async () => {
  await metrics.close();
  expect(await world.end()).toEqual([]);
});

/**
 * Runs a launcher with the names of the recorded one, and serves requests until both zones were used. Resolves with a
 * function that stops the reports.
 */
async function live(): Promise<() => Promise<void>> {
  const main = pool('main', [LABEL], { 'max-servers': 5000, 'availability-zones': ['az1', 'az2'] });
  const { store } = await world.launcher([provider('fake-provider', [main])], 'vm');
  const { zooKeeper } = store;
  const endReports = [
    reportProcess({ metrics, zooKeeper, eventLoop: new EventLoopMonitor() }),
    reportQueues({ metrics, zooKeeper, hostname: 'vm' }),
  ];
  const nodes = new NodeTally(store);
  nodes.start();
  const ensemble = new EnsembleMetrics({
    ...{ store, nodes, metrics, clock: world.clock, log: silentLogger, identifier: 'vm' },
  });
  ensemble.start();
  const zones = (): unknown[] => [...world.nodes().values()].map(({ az }) => az);
  while (!zones().includes('az1') || !zones().includes('az2')) {
    await world.served([LABEL], { requestor: 'load', reuse: false });
  }
  await world.clock.advance(INTERVAL_MS);
  return async () => {
    for (const end of endReports) end();
    await world.during(ensemble.stop());
  };
}

it('every recorded name is sent with its type', async () => {
  const stop = await live();
  const recorded = readFileSync(RECORDING, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.replace(/:[^|]*\|/, '|').replace(`label.${RECORDED_LABEL}.`, `label.${LABEL}.`));
  expect(recorded.length).toBeGreaterThan(40);
  expect(recorded.filter((name) => !statsd.sent.has(name))).toEqual([]);
  await stop();
});

it('other names that are sent are documented', async () => {
  const stop = await live();
  const known = [
    /^nodepool\.(label\.ubuntu-22\.04\.|provider\.[^.]+\.)?nodes\.[a-z-]+\|g$/,
    /^nodepool\.provider\.[^.]+\.max_(servers|cores|ram)\|g$/,
    /^nodepool\.provider\.[^.]+\.pool\.[^.]+\.addressable_requests\|g$/,
    /^nodepool\.launch\.(provider\.[^.]+\.([^.]+\.)?|requestor\.[^.]+\.)?ready\|(c|ms)$/,
    /^nodepool\.task\.[^.]+\.[^.]+\.[A-Z]+\.[^.]+\|(c|ms)$/,
    /^nodepool\.launcher\.vm\.zk\.[a-z_.]+\|g$/,
  ];
  expect([...statsd.sent].filter((name) => !known.some((pattern) => pattern.test(name)))).toEqual([]);
  await stop();
});

it('names keep their dots, except names of requestors, tenants and hosts', () => {
  metrics.observe(LAUNCHES, { provider: 'p.1', az: 'a.z', requestor: 'r:1.2', result: 'error.quota' }, 1);
  metrics.count(LEAKED_RESOURCES, { provider: 'p.1', kind: 'instance' });
  metrics.count(LEAKED_RESOURCES, { provider: 'p.1', kind: 'floating-ip' });
  expect([...statsd.sent].filter((name) => name.endsWith('|c')).sort()).toEqual([
    'nodepool.launch.error.quota|c',
    'nodepool.launch.provider.p.1.a.z.error.quota|c',
    'nodepool.launch.provider.p.1.error.quota|c',
    'nodepool.launch.requestor.r_1_2.error.quota|c',
    'nodepool.provider.p.1.leaked.floatingips|c',
    'nodepool.provider.p.1.leaked.instances|c',
  ]);
});

it('a name cannot end a key or a line of the protocol', () => {
  metrics.count(LEAKED_RESOURCES, { provider: 'a:1|g\nb', kind: 'port' });
  expect([...statsd.sent]).toEqual(['nodepool.provider.a_1_g_b.leaked.ports|c']);
});
