import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { MetricsRegistry, openPrometheus } from '@nodepool/daemon';
import { statsdName, statsdPart, type Counter, type Duration, type Gauge } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import { openStatsd, StatsdAddressError, statsdAddress } from '../src/metrics/statsd.js';

const SERVED: Counter<'guest'> = {
  kind: 'counter',
  name: 'served_total',
  help: 'Guests served.',
  labels: ['guest'],
  statsd: ({ guest }) => [`served.${statsdPart(guest)}`],
};
const SEATS: Gauge<'table'> = {
  kind: 'gauge',
  name: 'seats',
  help: 'Free seats.',
  labels: ['table'],
  statsd: ({ table }) => [`seats.${statsdPart(table)}`],
};
const MEAL: Duration<never> = {
  kind: 'duration',
  name: 'meal_seconds',
  help: 'Meals.',
  labels: [],
  buckets: [1, 10],
  statsd: () => ['meal'],
};

class Lines {
  readonly sent: string[] = [];
  increment = (key: string, amount: number): void => void this.sent.push(`${key}:${amount}|c`);
  timing = (key: string, ms: number): void => void this.sent.push(`${key}:${ms}|ms`);
  gauge = (key: string, value: number): void => void this.sent.push(`${key}:${value}|g`);
  close = (): Promise<void> => Promise.resolve();
}

describe('metrics', () => {
  it('are sent to statsd by key: counters and timers at once, gauges repeatedly', async () => {
    const clock = new VirtualClock();
    const statsd = new Lines();
    const metrics = new MetricsRegistry({ clock, statsd, prometheus: undefined, onError: () => undefined });
    metrics.count(SERVED, { guest: 'a.b:c' });
    metrics.observe(MEAL, {}, 1500);
    metrics.set(SEATS, { table: '1' }, 4);
    metrics.set(SEATS, { table: '1' }, 3);
    expect(statsd.sent).toEqual(['served.a_b_c:1|c', 'meal:1500|ms', 'meal:1|c']);
    statsd.sent.length = 0;
    await clock.advance(20_000);
    expect(statsd.sent).toEqual(['seats.1:3|g', 'seats.1:3|g']);
    metrics.set(SEATS, { table: '1' }, undefined);
    statsd.sent.length = 0;
    await clock.advance(20_000);
    await metrics.close();
    expect(statsd.sent).toEqual([]);
  });

  it('are served to Prometheus with labels and histograms', async () => {
    const prometheus = openPrometheus(() => undefined);
    const metrics = new MetricsRegistry({
      clock: new VirtualClock(),
      statsd: undefined,
      prometheus,
      onError: () => undefined,
    });
    metrics.count(SERVED, { guest: 'a "b"' }, 2);
    metrics.observe(MEAL, {}, 1500);
    metrics.set(SEATS, { table: '1' }, 3);
    metrics.set(SEATS, { table: '2' }, 3);
    metrics.set(SEATS, { table: '2' }, undefined);
    const { text, contentType } = (await metrics.exposition())!;
    expect(contentType).toMatch(/^text\/plain/);
    expect(text).toContain('# TYPE served_total counter\nserved_total{guest="a \\"b\\""} 2\n');
    expect(text).toContain('meal_seconds_bucket{le="1"} 0\nmeal_seconds_bucket{le="10"} 1\n');
    expect(text).toContain('seats{table="1"} 3\n');
    expect(text).not.toContain('table="2"');
  });

  it('are collected before they are read, and one that fails does not hide the others', async () => {
    const errors: unknown[] = [];
    const metrics = new MetricsRegistry({
      clock: new VirtualClock(),
      statsd: undefined,
      prometheus: openPrometheus(() => undefined),
      onError: (error) => errors.push(error),
    });
    let seats = 1;
    metrics.onCollect(() => {
      throw new Error('broken');
    });
    const end = metrics.onCollect(() => metrics.set(SEATS, { table: '1' }, seats));
    seats = 2;
    expect((await metrics.exposition())!.text).toContain('seats{table="1"} 2');
    expect(errors).toEqual([new Error('broken')]);
    end();
    seats = 3;
    expect((await metrics.exposition())!.text).toContain('seats{table="1"} 2');
  });

  it('have a bounded number of series for any labels', async () => {
    const dropped: string[] = [];
    const prometheus = openPrometheus((metric) => dropped.push(metric));
    for (let guest = 0; guest < 6000; guest += 1) prometheus.increment(SERVED, { guest: String(guest) }, 1);
    prometheus.increment(SERVED, { guest: '1' }, 1);
    const text = await prometheus.text();
    expect(text.split('\n').filter((line) => line.startsWith('served_total{'))).toHaveLength(5000);
    expect(text).toContain('served_total{guest="1"} 2\n');
    expect(dropped).toEqual(['served_total']);

    const meals: Duration<'guest'> = { ...MEAL, labels: ['guest'], statsd: () => [] };
    for (let guest = 0; guest < 6000; guest += 1) prometheus.observe(meals, { guest: String(guest) }, 1);
    prometheus.observe(meals, { guest: '1' }, 1);
    const counts = (await prometheus.text()).split('\n').filter((line) => line.startsWith('meal_seconds_count{'));
    expect(counts).toHaveLength(5000);
    expect(counts).toContain('meal_seconds_count{guest="1"} 2');
    expect(dropped).toEqual(['served_total', 'meal_seconds']);
  });

  it('have room for another series after one was removed', async () => {
    const dropped: string[] = [];
    const prometheus = openPrometheus((metric) => dropped.push(metric));
    for (let table = 0; table < 5000; table += 1) prometheus.set(SEATS, { table: String(table) }, 1);
    prometheus.set(SEATS, { table: '7' }, undefined);
    prometheus.set(SEATS, { table: 'another' }, 1);
    const text = await prometheus.text();
    expect([text.includes('seats{table="7"}'), text.includes('seats{table="another"} 1')]).toEqual([false, true]);
    expect(dropped).toEqual([]);
  });
});

describe('statsd', () => {
  it('gets datagrams with several lines', async () => {
    const server: Socket = createSocket('udp4');
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    const received = once(server, 'message') as Promise<[Buffer]>;
    const errors: Error[] = [];
    const address = { host: 'localhost', port: server.address().port };
    const statsd = openStatsd(address, new VirtualClock(), (error) => errors.push(error));
    statsd.increment('a.b', 2);
    statsd.timing('a.b', 12.5);
    statsd.gauge('c', 7);
    await statsd.close();
    const [message] = await received;
    expect(message.toString().trim().split('\n')).toEqual(['a.b:2|c', 'a.b:12.5|ms', 'c:7|g']);
    expect(errors).toEqual([]);
    server.close();
    await once(server, 'close');
  });

  it('gets collected metrics after a second, in datagrams within the MTU', async () => {
    const server: Socket = createSocket('udp4');
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    const clock = new VirtualClock();
    const errors: Error[] = [];
    const statsd = openStatsd({ host: '127.0.0.1', port: server.address().port }, clock, (error) => errors.push(error));
    const line = `${'k'.repeat(996)}:7|g`;
    statsd.gauge('k'.repeat(996), 7);
    statsd.gauge('k'.repeat(996), 7);
    const datagrams: string[] = [];
    const bothArrived = new Promise<void>((resolve) => {
      server.on('message', (message) => {
        if (datagrams.push(message.toString()) === 2) resolve();
      });
    });
    await clock.advance(1000);
    await bothArrived;
    expect(datagrams).toEqual([line, line]);
    expect(errors).toEqual([]);
    await statsd.close();
    server.close();
    await once(server, 'close');
  });

  it('reports a host without an address', async () => {
    const errors: Error[] = [];
    const statsd = openStatsd({ host: 'statsd.invalid', port: 1 }, new VirtualClock(), (error) => errors.push(error));
    statsd.increment('a', 1);
    await statsd.close();
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('statsd.invalid')]);
  });

  it.each([
    [{}, undefined],
    [{ STATSD_HOST: '' }, undefined],
    [{ STATSD_HOST: 'h' }, { host: 'h', port: 8125 }],
    [{ STATSD_PORT: '1' }, { host: 'localhost', port: 1 }],
    [
      { STATSD_HOST: 'h', STATSD_PORT: '9125' },
      { host: 'h', port: 9125 },
    ],
  ])('has the address of %j', (env, address) => {
    expect(statsdAddress(env)).toEqual(address);
  });

  it.each(['x', '0', '65536', '1.5'])('rejects port %s', (port) => {
    expect(() => statsdAddress({ STATSD_PORT: port })).toThrow(StatsdAddressError);
    expect(() => statsdAddress({ STATSD_PORT: port })).toThrow('STATSD_PORT');
  });

  it('keys replace only characters that the protocol reserves', () => {
    expect(statsdName('ubuntu-22.04')).toBe('ubuntu-22.04');
    expect(statsdName('a.b:c|d\n#e@f g')).toBe('a.b_c_d_#e@f g');
    expect(statsdPart('nl01.example.org:8005')).toBe('nl01_example_org_8005');
    expect(statsdPart('in-use')).toBe('in-use');
  });
});
