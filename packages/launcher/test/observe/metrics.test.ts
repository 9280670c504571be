/** Tests of the launcher's metrics, as monitoring receives them. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ERROR_POLICIES, KeyScanError, silentLogger, type DriverErrorCode } from '@nodepool/core';
import type { StatsdSender } from '@nodepool/daemon';
import { MetricsRegistry, openPrometheus } from '@nodepool/daemon';
import { NodeTally } from '@nodepool/status';
import { EnsembleMetrics, STATS_ELECTION } from '../../src/metrics/ensemble-metrics.js';
import { World, pool, provider, type RunningLauncher } from '../support/world.js';

const INTERVAL_MS = 10_000;

/** Failure results of Nodepool 11, from its `statsd_key` attributes and assignments. */
const EXISTING_RESULTS = [
  'error.nodepool',
  'error.status',
  'error.network',
  'error.keyscan',
  'error.capacity',
  'error.ssh',
  'error.ipadd',
  'error.servercreatetimeout',
  'error.serverdeletetimeout',
  'error.imagetimeout',
  'error.quota',
  'error.zksession',
  'error.unknown',
];

/** A statsd server that keeps the last value of each gauge, and every counter and timer. */
class Statsd implements StatsdSender {
  readonly gauges = new Map<string, number>();
  readonly counters = new Map<string, number>();
  readonly timings = new Map<string, number[]>();
  increment(key: string, amount: number): void {
    this.counters.set(key, (this.counters.get(key) ?? 0) + amount);
  }
  timing(key: string, ms: number): void {
    this.timings.set(key, [...(this.timings.get(key) ?? []), ms]);
  }
  gauge(key: string, value: number): void {
    this.gauges.set(key, value);
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
}

let world: World;
let statsd: Statsd;
let metrics: MetricsRegistry;
let errors: unknown[];
const ensembles: EnsembleMetrics[] = [];

beforeEach(() => {
  world = new World();
  statsd = new Statsd();
  errors = [];
  metrics = new MetricsRegistry({
    clock: world.clock,
    statsd,
    prometheus: openPrometheus((name) => errors.push(name)),
    onError: (error) => errors.push(error),
  });
  world.observation = { metrics };
});

afterEach(async () => {
  for (const ensemble of ensembles.splice(0)) await world.during(ensemble.stop());
  await metrics.close();
  expect(await world.end()).toEqual([]);
  expect(errors).toEqual([]);
});

async function launcher(more = {}, poolMore = {}): Promise<RunningLauncher> {
  return world.launcher([provider('de.mo', [pool('main', ['small', 'large'], poolMore)], more)]);
}

function reportEnsemble({ store }: RunningLauncher, to: MetricsRegistry = metrics): EnsembleMetrics {
  const nodes = new NodeTally(store);
  nodes.start();
  const ensemble = new EnsembleMetrics({
    ...{ store, nodes },
    metrics: to,
    clock: world.clock,
    log: silentLogger,
    identifier: 'launcher1',
  });
  ensembles.push(ensemble);
  ensemble.start();
  return ensemble;
}

async function failed(label: string): Promise<void> {
  const id = await world.submit([label]);
  await world.inState(id, 'failed');
}

/** Returns the numbers of counted failures, by the part of the key after `nodepool.launch.`. */
function launchErrors(): Record<string, number> {
  const prefix = 'nodepool.launch.';
  const errors = [...statsd.counters].filter(([key]) => key.startsWith(`${prefix}error.`));
  return Object.fromEntries(errors.map(([key, count]) => [key.slice(prefix.length), count]));
}

describe('a launch', () => {
  it('is counted and timed in total, by provider, and by requestor', async () => {
    await launcher();
    await world.served(['small'], { requestor: 'NodePool:test.1' });
    const keys = ['nodepool.launch.ready', 'nodepool.launch.provider.de.mo.ready'];
    for (const key of [...keys, 'nodepool.launch.requestor.NodePool_test_1.ready']) {
      expect([key, statsd.counters.get(key), statsd.timings.get(key)?.length]).toEqual([key, 1, 1]);
    }
  });

  it('is counted by its zone if it has one', async () => {
    await launcher({}, { 'availability-zones': ['zone-1'] });
    await world.served(['small']);
    expect(statsd.counters.get('nodepool.launch.provider.de.mo.zone-1.ready')).toBe(1);
  });

  it('is counted once per failed attempt with its cause, and not again at its end', async () => {
    await launcher({ 'launch-retries': 2 }, { 'host-key-checking': true });
    world.scanner = { scan: () => Promise.reject(new KeyScanError('no answer')) };
    await failed('small');
    expect(launchErrors()).toEqual({ 'error.keyscan': 2 });
    expect(statsd.counters.get('nodepool.launch.ready')).toBeUndefined();
    const { text } = (await metrics.exposition())!;
    expect(text).toContain(
      'nodepool_launch_attempts_failed_total{provider="de.mo",pool="main",label="small",reason="keyscan"} 2',
    );
  });

  it('that succeeds on its second attempt is counted as both', async () => {
    await launcher({ 'launch-retries': 2 }, { 'host-key-checking': true });
    let scans = 0;
    world.scanner = {
      scan: () => ((scans += 1) === 1 ? Promise.reject(new KeyScanError('no answer')) : Promise.resolve(['key'])),
    };
    await world.served(['small']);
    expect(launchErrors()).toEqual({ 'error.keyscan': 1 });
    expect(statsd.counters.get('nodepool.launch.ready')).toBe(1);
  });

  it.each(Object.keys(ERROR_POLICIES) as DriverErrorCode[])(
    'that fails with %s has a result that the Python Nodepool also reports',
    (code) => {
      const { metric } = ERROR_POLICIES[code];
      if (code === 'aborted') expect(metric).toBeUndefined();
      else expect(EXISTING_RESULTS).toContain(metric);
    },
  );
});

it('calls of the cloud’s API are counted and timed', async () => {
  await launcher();
  await world.served(['small']);
  const tasks = [...statsd.counters.keys()].filter((key) => key.startsWith('nodepool.task.de.mo.'));
  expect(tasks.length).toBeGreaterThan(0);
  for (const key of tasks) {
    expect(key).toMatch(/^nodepool\.task\.de\.mo\.[^.]+\.[A-Z]+\.[^.]+$/);
    expect(statsd.timings.get(key)).toHaveLength(statsd.counters.get(key)!);
  }
  expect((await metrics.exposition())!.text).toContain('nodepool_api_answers_total{provider="de.mo"');
});

describe('the metrics of limits', () => {
  it('of providers and tenants equal the configuration', async () => {
    const { launcher: running } = await world.launcher(
      [provider('demo', [pool('a', ['small'], { 'max-servers': 3 }), pool('b', ['small'], { 'max-servers': 4 })])],
      'launcher1',
      { tenantLimits: new Map([['ten.ant', { instances: 5, cores: 8 }]]) },
    );
    await world.clock.advance(INTERVAL_MS);
    expect(Object.fromEntries(statsd.gauges)).toMatchObject({
      'nodepool.provider.demo.max_servers': 7,
      'nodepool.tenant_limits.ten_ant.instances': 5,
      'nodepool.tenant_limits.ten_ant.cores': 8,
    });
    await world.during(running.apply(world.config([provider('demo', [pool('a', ['small'])])])));
    await world.clock.advance(INTERVAL_MS);
    expect(statsd.gauges.get('nodepool.provider.demo.max_servers')).toBe(0);
    const { text } = (await metrics.exposition())!;
    expect(text).toContain('nodepool_tenant_limit{tenant="ten.ant",limit="cores"} 0');
  });
});

describe('the metrics of nodes', () => {
  it('are gauges by state, by label and by provider, including zeros', async () => {
    reportEnsemble(await launcher());
    await world.served(['small', 'small', 'large']);
    await world.clock.advance(INTERVAL_MS);
    expect(Object.fromEntries(statsd.gauges)).toMatchObject({
      'nodepool.nodes.ready': 3,
      'nodepool.nodes.in-use': 0,
      'nodepool.label.small.nodes.ready': 2,
      'nodepool.label.large.nodes.ready': 1,
      'nodepool.label.large.nodes.building': 0,
      'nodepool.provider.de.mo.nodes.ready': 3,
      'nodepool.provider.de.mo.nodes.deleted': 0,
    });
  });

  it('follow every change to zero', async () => {
    reportEnsemble(await launcher());
    const id = await world.served(['small']);
    const taken = await world.during(world.requestor.take(id));
    await world.clock.advance(INTERVAL_MS);
    expect(statsd.gauges.get('nodepool.nodes.in-use')).toBe(1);
    await world.during(world.requestor.giveBack(taken));
    await world.until('the node is gone', () => world.nodes().size === 0);
    await world.clock.advance(INTERVAL_MS);
    const left = [...statsd.gauges].filter(([key, value]) => key.includes('nodes.') && value !== 0);
    expect(left).toEqual([]);
    expect(statsd.gauges.get('nodepool.label.small.nodes.in-use')).toBe(0);
  });

  it('are reported by one launcher, and by another when that one stops', async () => {
    const first = reportEnsemble(await launcher());
    const otherStatsd = new Statsd();
    const other = new MetricsRegistry({
      clock: world.clock,
      statsd: otherStatsd,
      prometheus: undefined,
      onError: (error) => errors.push(error),
    });
    const second = await world.launcher([provider('de.mo', [pool('main', ['small'])])], 'launcher2');
    reportEnsemble(second, other);
    await world.clock.advance(INTERVAL_MS);
    expect([...world.server.dump().keys()].filter((path) => path.startsWith(`${STATS_ELECTION}/`))).toHaveLength(2);
    expect(statsd.gauges.has('nodepool.nodes.ready')).toBe(true);
    expect(otherStatsd.gauges.has('nodepool.nodes.ready')).toBe(false);
    await world.during(first.stop());
    statsd.gauges.clear();
    await world.clock.advance(INTERVAL_MS);
    expect(otherStatsd.gauges.has('nodepool.nodes.ready')).toBe(true);
    expect(statsd.gauges.has('nodepool.nodes.ready')).toBe(false);
    expect((await metrics.exposition())!.text).not.toContain('nodepool_nodes{');
    await other.close();
  });
});

it('requests are counted for each pool that has all of their labels', async () => {
  reportEnsemble(await launcher({ 'max-concurrency': 0 }));
  await world.submit(['small', 'small', 'large']);
  await world.submit(['elsewhere'], { provider: 'nobody' });
  await world.clock.advance(INTERVAL_MS);
  expect(statsd.gauges.get('nodepool.provider.de.mo.pool.main.addressable_requests')).toBe(1);
});
