/** Metrics of builders, under the keys of the existing ones. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { MetricsRegistry } from '@nodepool/daemon';
import type { StatsdSender } from '@nodepool/daemon';
import { World, type Site } from './support/world.js';

const INTERVAL_MS = 10_000;
const SITE: Site = {
  images: { 'debian.12': { formats: ['raw'] }, fedora: { pause: true } },
  providers: { 'one:a': { images: ['debian.12', 'fedora'] }, two: { images: ['debian.12'], pause: true } },
};

let world: World;
let gauges: Map<string, number>;
let timings: string[];
let metrics: MetricsRegistry;

function createMetrics(): MetricsRegistry {
  const statsd: StatsdSender = {
    increment: () => undefined,
    timing: (key, ms) => void timings.push(`${key} ${Math.round(ms / 1000)}`),
    gauge: (key, value) => void gauges.set(key, value),
    close: () => Promise.resolve(),
  };
  return new MetricsRegistry({
    clock: world.clock,
    statsd,
    prometheus: undefined,
    onError: (error) => {
      throw error;
    },
  });
}

beforeEach(() => {
  world = new World();
  gauges = new Map();
  timings = [];
  metrics = createMetrics();
  world.metrics = metrics;
  world.workers = { buildWorkers: 2, uploadWorkers: 3 };
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
  await metrics.close();
});

it('has the names and values that dashboards use', async () => {
  const { dib } = await world.builder(SITE);
  await world.until('it is being built', () => dib.jobs.length === 1);
  await world.after(INTERVAL_MS);
  expect(Object.fromEntries(gauges)).toEqual({
    'nodepool.image_build_requests': 0,
    'nodepool.image.debian.12.image_build_requests': 0,
    'nodepool.image.fedora.image_build_requests': 0,
    'nodepool.builder.builder-1_example_org.current_builds': 1,
    'nodepool.builder.builder-1_example_org.current_uploads': 0,
    'nodepool.builder.builder-1_example_org.build_workers': 2,
    'nodepool.builder.builder-1_example_org.upload_workers': 3,
    'nodepool.builder.builder-1_example_org.image.debian.12.build.state': 1,
    'nodepool.builder.builder-1_example_org.image.fedora.build.state': 3,
    'nodepool.builder.builder-1_example_org.image.debian.12.provider.one_a.upload.state': 0,
    'nodepool.builder.builder-1_example_org.image.fedora.provider.one_a.upload.state': 0,
    'nodepool.builder.builder-1_example_org.image.debian.12.provider.two.upload.state': 3,
  });

  world.cloud.uploadMs = [60_000, 60_000];
  await world.until('it is being uploaded', () => world.cloud.startedUploads.length === 1);
  await world.after(INTERVAL_MS);
  expect(gauges.get('nodepool.builder.builder-1_example_org.current_uploads')).toBe(1);
  expect(gauges.get('nodepool.builder.builder-1_example_org.image.debian.12.build.state')).toBe(0);
  expect(gauges.get('nodepool.builder.builder-1_example_org.image.debian.12.provider.one_a.upload.state')).toBe(2);
  expect(gauges.get('nodepool.dib_image_build.debian.12.status.rc')).toBe(0);
  expect(gauges.get('nodepool.dib_image_build.debian.12.qcow2.size')).toBe(500);
  expect(gauges.get('nodepool.dib_image_build.debian.12.raw.size')).toBe(500);
  const [build] = world.builds('debian.12');
  expect(gauges.get('nodepool.dib_image_build.debian.12.status.last_build')).toBe(
    Math.floor(Number(build?.['state_time'])),
  );

  await world.until('it is uploaded', () => world.readyUploads('debian.12', 'one:a') === 1);
  await world.after(1000);
  expect(timings).toEqual([
    'nodepool.dib_image_build.debian.12.status.duration 60',
    'nodepool.image_update.debian.12.one_a 60',
  ]);
});

it('reports the time of the last build after a restart', async () => {
  const first = await world.builder(SITE);
  await world.until('the image is built', () => world.readyBuilds('debian.12') === 1);
  const [build] = world.builds('debian.12');
  await first.stop();
  await metrics.close();
  metrics = createMetrics();
  world.metrics = metrics;
  gauges.clear();
  await world.after(3_600_000);
  await world.builder(SITE);
  await world.after(INTERVAL_MS);
  expect(gauges.get('nodepool.dib_image_build.debian.12.status.last_build')).toBe(
    Math.floor(Number(build?.['state_time'])),
  );
  expect(gauges.has('nodepool.dib_image_build.debian.12.status.rc')).toBe(false);
});

it('counts requests until their builds start', async () => {
  const { dib } = await world.builder(SITE);
  await world.until('the image is built', () => world.readyBuilds('debian.12') === 1);
  const { images } = await world.operator();
  await world.during(images.pause('debian.12'));
  await world.during(images.requestBuild('debian.12'));
  await world.after(INTERVAL_MS);
  expect(gauges.get('nodepool.image_build_requests')).toBe(1);
  expect(gauges.get('nodepool.image.debian.12.image_build_requests')).toBe(1);
  await world.during(images.unpause('debian.12'));
  await world.until('it is being built', () => dib.jobs.length === 2);
  await world.after(INTERVAL_MS);
  expect(gauges.get('nodepool.image_build_requests')).toBe(0);
  expect(gauges.get('nodepool.image.debian.12.image_build_requests')).toBe(0);
});

it('does not report images, providers and uploads that no longer exist', async () => {
  const set: string[] = [];
  const { set: setGauge } = metrics;
  metrics.set = (gauge, labels, value) => {
    const series = [gauge.name, ...Object.values<string>(labels)].join(' ');
    if (value === undefined) set.splice(set.indexOf(series), 1);
    else if (!set.includes(series)) set.push(series);
    setGauge.call(metrics, gauge, labels, value);
  };
  const { apply } = await world.builder(SITE);
  world.cloud.uploadMs = [60_000, 60_000];
  await world.until('it is being uploaded', () => world.cloud.startedUploads.length === 1);
  await world.after(INTERVAL_MS);
  const upload = 'nodepool_builder_upload_sent_bytes builder-1.example.org debian.12 one:a';
  expect(set).toContain(upload);
  await world.until('it is uploaded', () => world.readyUploads('debian.12', 'one:a') === 1);
  await world.after(INTERVAL_MS);
  expect(set).not.toContain(upload);
  apply({ images: { 'debian.12': {} }, providers: { two: { images: ['debian.12'], pause: true } } });
  await world.after(INTERVAL_MS);
  expect(set.filter((series) => /fedora|one:a/.test(series))).toEqual([]);
  apply({ images: {}, providers: {} });
  gauges.clear();
  await world.after(INTERVAL_MS);
  expect(set.filter((series) => /debian/.test(series))).toEqual([]);
  expect([...gauges.keys()].filter((key) => /debian|fedora|one_a/.test(key))).toEqual([]);
});

it.each([
  ['fails', 100],
  ['full', 1],
  ['hangs', 1],
  ['no-file', 1],
] as const)(
  'reports the status and the time of a build that ends with "%s" after a successful one',
  async (ending, status) => {
    const { dib } = await world.builder(SITE);
    await world.until('the image is built', () => world.readyBuilds('debian.12') === 1);
    await world.after(INTERVAL_MS);
    expect(gauges.get('nodepool.dib_image_build.debian.12.status.rc')).toBe(0);
    dib.ending = () => ending;
    const { images } = await world.operator();
    await world.during(images.requestBuild('debian.12'));
    await world.until('it has failed', () => world.builds('debian.12').some(({ state }) => state === 'failed'));
    const endedAt = Number(world.builds('debian.12').find(({ state }) => state === 'failed')?.['state_time']);
    await world.after(INTERVAL_MS);
    expect(gauges.get('nodepool.dib_image_build.debian.12.status.rc')).toBe(status);
    expect(gauges.get('nodepool.dib_image_build.debian.12.status.last_build')).toBe(Math.floor(endedAt));
    expect(gauges.get('nodepool.image_build_requests')).toBe(1);
    expect(gauges.get('nodepool.image.debian.12.image_build_requests')).toBe(1);
  },
);
