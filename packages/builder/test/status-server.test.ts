/** The web endpoint of a builder. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MetricsRegistry, openPrometheus } from '@nodepool/daemon';
import type { HttpServer } from '@nodepool/daemon/web';
import { createStatusServer } from '../src/status-server.js';
import { World, type RunningBuilder, type Site } from './support/world.js';

const SITE: Site = {
  images: { debian: { formats: ['raw'] }, fedora: { pause: true } },
  providers: { cloud: { images: ['debian'], format: 'raw' } },
};

let world: World;
let server: HttpServer;
let running: RunningBuilder;
let port: number;
beforeEach(async () => {
  world = new World();
  const { clock, log } = world;
  const prometheus = openPrometheus(() => undefined);
  const metrics = new MetricsRegistry({ clock, statsd: undefined, prometheus, onError: () => undefined });
  world.metrics = metrics;
  running = await world.builder(SITE);
  const { store, builder } = running;
  server = createStatusServer({
    ...{ store, clock, log, metrics, hostname: 'nb01', version: '1.2.3', builderId: 'id' },
    config: () => world.config(SITE),
    activity: () => builder.activity(),
    eventLoop: { read: () => ({ p50: 0, p99: 0.004, max: 0.1 }) },
  });
  ({ port } = await server.start({ port: 0, address: '127.0.0.1', otherAddress: '' }));
});
afterEach(async () => {
  await server.stop();
  expect(await world.end()).toEqual([]);
});

async function get(path: string): Promise<{ status: number; text: string }> {
  const headers = { Connection: 'close', Accept: 'application/json' };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  return { status: response.status, text: await response.text() };
}

async function json(path: string): Promise<unknown> {
  return JSON.parse((await get(path)).text);
}

describe('the web endpoint', () => {
  it('shows the builds in progress, and images with their builds and uploads', async () => {
    await world.until('it is being built', () => running.dib.jobs.length === 1);
    const [build] = world.builds('debian');
    expect(await json('/status/v1/overview')).toMatchObject({
      builder: { hostname: 'nb01', version: '1.2.3', id: 'id', zookeeper: 'connected', ready: true },
      builds: [{ image: 'debian', build: build?.id }],
      uploads: [],
      providers: [{ provider: 'cloud', ready: true }],
    });
    expect((await get('/')).text).toContain(`builds: 1\n  debian ${build?.id ?? ''}, for `);
    expect(await json('/status/v1/images')).toMatchObject({
      images: [
        { name: 'debian', paused: false, builds: [{ id: build?.id, state: 'building' }], uploads: [] },
        { name: 'fedora', paused: true, builds: [] },
      ],
    });
    await world.until('it is uploaded', () => world.readyUploads('debian', 'cloud') === 1);
    await world.after(1000);
    expect(await json('/status/v1/image/debian')).toMatchObject({
      image: {
        builds: [{ state: 'ready', duration: 60 }],
        uploads: [{ provider: 'cloud', build: build?.id, state: 'ready' }],
      },
    });
  });

  it('has metrics and health checks, and rejects other paths', async () => {
    expect((await get('/metrics')).text).toMatch(/^nodepool_builder_work\{.*what="build_workers"\} 1$/m);
    expect(await get('/ready')).toEqual({ status: 200, text: 'OK' });
    expect(await json('/health')).toMatchObject({ status: 'ok', zookeeper: 'connected' });
    expect(await get('/status/v1/image/none')).toMatchObject({ status: 404 });
    expect(await get('/status/v1/image/__proto__')).toMatchObject({ status: 404 });
    expect(await get('/elsewhere')).toMatchObject({ status: 404 });
    const response = await fetch(`http://127.0.0.1:${port}/status/v1/overview`, { method: 'POST' });
    expect(response.status).toBe(405);
  });

  it('reports degraded and not ready without ZooKeeper', async () => {
    world.server.partition(running.zk);
    await world.until('it is lost', () => running.zk.state !== 'connected');
    expect(await json('/health')).toMatchObject({ status: 'degraded', ready: false });
    expect((await get('/ready')).status).toBe(503);
    world.server.heal(running.zk);
    await world.until('it is found', () => running.store.complete && running.zk.state === 'connected');
    expect((await get('/ready')).status).toBe(200);
  });
});
