/** Metrics of a process and its connection to ZooKeeper, as Prometheus reads them. */

import { expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { MetricsRegistry, openPrometheus, reportProcess, ZooKeeperWatch } from '@nodepool/daemon';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';

const fail = (error: unknown): never => {
  throw error;
};

it('process metrics cover the process, its event loop and ZooKeeper, until the reports end', async () => {
  const clock = new VirtualClock();
  const zooKeeper = new SimulatedZooKeeperServer({ clock }).connect();
  const metrics = new MetricsRegistry({ clock, statsd: undefined, prometheus: openPrometheus(fail), onError: fail });
  let resets = 0;
  const eventLoop = { read: () => ({ p50: 0.001, p99: 0.25, max: 1.5 }), reset: () => (resets += 1) };
  const endReports = reportProcess({ metrics, zooKeeper, eventLoop });
  const watch = new ZooKeeperWatch({ zooKeeper, clock, metrics, onError: fail });
  watch.start();
  expect(watch.read()).toMatchObject({ state: 'connecting', server: undefined, latency: { p50: null, p95: null } });
  await clock.advance(60_000);
  expect(watch.read()).toMatchObject({ state: 'connected', server: '127.0.0.1:2181', latency: { p50: 0 } });

  const text = (await metrics.exposition())?.text ?? '';
  const value = (series: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length),
    );
  expect(value('nodepool_zookeeper_connected')).toBe(1);
  expect(value('nodepool_zookeeper_latency_seconds_count')).toBe(4);
  expect(value('nodepool_zookeeper_requests_total{operation="exists"}')).toBe(4);
  expect(value('nodepool_zookeeper_bytes_total{direction="sent"}')).toBeGreaterThan(100);
  expect(value('nodepool_process_cpu_seconds_total')).toBeGreaterThan(0);
  expect(value('nodepool_process_memory_bytes{kind="resident"}')).toBeGreaterThan(10e6);
  expect(value('nodepool_event_loop_delay_seconds{quantile="1"}')).toBe(1.5);
  expect(resets).toBe(1);

  endReports();
  watch.stop();
  await metrics.exposition();
  expect(resets).toBe(1);
  await zooKeeper.close();
  await metrics.close();
});
