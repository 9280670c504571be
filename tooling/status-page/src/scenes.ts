/** Sample data for the page: the records in ZooKeeper and the state of the launcher. */

import type { DriverPackage } from '@nodepool/config';
import type { JsonObject, NodeState, ProviderConfig } from '@nodepool/core';
import type { PoolActivity, ProviderActivity } from '@nodepool/status';
import type { PageServer } from './page-server.js';

const LABELS = ['debian-12-small', 'debian-12-large', 'ubuntu-24.04-small', 'fedora-43-arm64'] as const;
const NO_MIN_READY = { minReady: 0, maxReadyAgeMs: Infinity, maxWaitMs: Infinity };
const HOURS_OF_HISTORY = 6;
const STEP_SECONDS = 600;

/** A newly installed launcher. */
export async function empty(page: PageServer): Promise<void> {
  register(page, 'launcher', 'nl01.example.org', { example: '1.4.0' });
  await page.clock.settle();
}

/** A working day: a cloud with free capacity, a full one, and one of another launcher. */
export async function busy(page: PageServer): Promise<void> {
  register(page, 'launcher', 'nl01.example.org', { openstack: '1.4.0', gce: '1.3.2' });
  register(page, 'launcher', 'nl02.example.org', { openstack: '1.4.0', azure: '1.4.0' });
  register(page, 'builder', 'nb01.example.org', { openstack: '1.4.0', gce: '1.3.2', azure: '1.4.0' });
  registerPool(page, 'vexxhost', 'main', 'nl01.example.org', LABELS);
  registerPool(page, 'vexxhost', 'main', 'nl02.example.org', LABELS);
  registerPool(page, 'gce-europe', 'arm', 'nl01.example.org', ['fedora-43-arm64'], true);
  registerPool(page, 'azure-west', 'main', 'nl02.example.org', LABELS.slice(0, 3));
  page.config = {
    ...page.config,
    providers: new Map([provider('vexxhost', 'openstack'), provider('gce-europe', 'gce')]),
    driverPackages: new Map([driver('openstack', '1.4.0'), driver('gce', '1.3.2')]),
    labels: new Map([...LABELS, 'ubuntu-24.04-arm64'].map((name) => [name, { name, ...NO_MIN_READY }])),
  };
  await page.clock.settle();
  await history(page);
  page.activity = [
    activity('vexxhost', { instances: 200, cores: 800, ram: 1_638_400 }, [
      pool('main', { instances: 180 }, { instances: 112, cores: 448, ram: 917_504 }, [], 0),
    ]),
    activity('gce-europe', {}, [
      pool('arm', { instances: 24 }, { instances: 24, cores: 96, ram: 393_216 }, ['ubuntu-24.04-arm64'], 3),
    ]),
  ];
  await images(page);
  await requests(page);
  const log = page.log.with({ provider: 'gce-europe', pool: 'arm' });
  await page.clock.advance(1000);
  for (const id of ['0000000301', '0000000307', '0000000312']) {
    log.warn('Launch attempt failed', {
      label: 'fedora-43-arm64',
      node_id: id,
      error: new Error('192.0.2.41:22 gave no ssh host keys within 300000 ms'),
    });
    await page.clock.advance(340_000);
  }
  const quota = new Error(
    'GET https://compute.example.org/v2.1/limits answered 503 Service Unavailable (request req-5b1c)',
  );
  page.log.warn('The limits of the provider could not be read; retrying', {
    provider: 'vexxhost',
    error: quota,
  });
  page.log.error('Background work failed', new Error('the driver threw undefined'), { task: 'find images' });
  await page.clock.advance(95_000);
}

/** `busy` with a rejected configuration, a driver that cannot be loaded, and malformed records. */
export async function broken(page: PageServer): Promise<void> {
  await busy(page);
  const file = '/etc/nodepool/nodepool.yaml';
  page.refusedSince = page.clock.now() - 65_000;
  page.problems = [
    {
      file,
      line: 31,
      column: 7,
      path: 'providers[0].pools[0].max-servers',
      expected: 'a whole number',
      found: '"many"',
      hint: undefined,
    },
    {
      file,
      line: 48,
      column: 15,
      path: 'providers[1].pools[0].labels[2].diskimage',
      expected: 'the name of a disk image',
      found: '"debian-21"',
      hint: 'did you mean "debian-12"?',
    },
  ];
  const reason =
    'the package @nodepool/driver-aws is not installed; install it with `npm install @nodepool/driver-aws`';
  page.config = { ...page.config, brokenProviders: new Map([['aws-east', { driver: 'aws', reason }]]) };
  await page.put('nodes/0000009999', 'no JSON at all');
  await page.put('nodes/', nodeRecord('ready', 'rackspace', page.now - 90_000), true);
  await page.clock.settle();
}

/** All text from other programs is markup or very long. */
export async function hostile(page: PageServer): Promise<void> {
  const script = '<img src=x onerror="document.title=\'hacked\'"><script>document.title="hacked"</script>';
  const common = { hostname: script, state: 'running', version: script, model_api: 0 };
  await page.put('components/launcher/x', { ...common, kind: 'launcher', drivers: { [script]: script } }, true);
  const pooled = { id: script, name: script, provider_name: script, supported_labels: [script], priority: 1 };
  await page.put('components/pool/x', { ...common, ...pooled, kind: 'pool', paused: false }, true);
  await page.put('nodes/', { ...nodeRecord('ready', script, page.now), comment: script }, true);
  await page.put('requests/100-', { ...requestRecord([script, script], page.now), requestor: script }, true);
  await page.put('requests/100-', requestRecord(['x'.repeat(5000)], page.now), true);
  page.activity = [activity(script, {}, [pool(script, {}, { [script]: 3 }, [script], 0)])];
  page.log.error(script, new Error(script.repeat(50)), { provider: script, node_id: '../../' });
  page.config = { ...page.config, brokenProviders: new Map([['two', { driver: script, reason: script }]]) };
  await page.clock.settle();
}

/** 10,000 nodes and 5,000 requests. */
export async function crowded(page: PageServer): Promise<void> {
  register(page, 'launcher', 'nl01.example.org', { openstack: '1.4.0' });
  registerPool(page, 'vexxhost', 'main', 'nl01.example.org', LABELS);
  for (let first = 0; first < 10_000; first += 500) {
    await page.putMany('nodes/', nodeRecord('in-use', 'vexxhost', page.now), 500);
  }
  for (let first = 0; first < 5000; first += 500) {
    await page.putMany('requests/100-', requestRecord(LABELS.slice(0, 1), page.now), 500);
  }
  page.activity = [activity('vexxhost', { instances: 10_000 }, [pool('main', {}, { instances: 10_000 }, [], 5000)])];
}

function register(
  page: PageServer,
  kind: 'launcher' | 'builder',
  hostname: string,
  drivers: Record<string, string>,
): void {
  page.store.components.register({ hostname, kind, state: 'running', version: '1.4.0', model_api: 0, drivers });
}

function registerPool(
  page: PageServer,
  provider: string,
  name: string,
  hostname: string,
  labels: readonly string[],
  paused = false,
): void {
  const id = `${hostname}-PoolWorker.${provider}-${name}-0`;
  const common = { hostname, kind: 'pool', state: 'running', version: '1.4.0', model_api: 0 } as const;
  const about = { id, name, provider_name: provider, supported_labels: labels, priority: 100, paused };
  page.store.components.register({ ...common, ...about });
}

function provider(name: string, driverName: string): [string, ProviderConfig] {
  const unused = { maxConcurrency: Infinity, launchRetries: 3, launchTimeoutMs: 0, bootTimeoutMs: 0 };
  const empty = { pools: new Map(), diskImages: new Map(), imageFormat: undefined, section: {} };
  return [name, { name, driver: driverName, priority: 100, callsPerSecond: Infinity, ...unused, ...empty }];
}

function driver(name: string, version: string): [string, DriverPackage] {
  return [name, { name, package: `@nodepool/driver-${name}`, version, api: 1, folder: '', warnings: [] }];
}

/** Creates and deletes nodes as on a day with two waves of changes. The last step is the current state. */
async function history(page: PageServer): Promise<void> {
  const steps = (HOURS_OF_HISTORY * 3600) / STEP_SECONDS;
  const there = new Map<string, string[]>();
  for (let step = 0; step <= steps; step += 1) {
    const load = 0.5 + 0.5 * Math.sin((step / steps) * 9 - 1.3) ** 2 * Math.min(1, step / 8);
    const wanted: readonly [NodeState, string, number][] = [
      ['in-use', 'vexxhost', 92 * load],
      ['ready', 'vexxhost', 24 - 14 * load],
      ['building', 'vexxhost', 14 * Math.abs(Math.cos(step / 3))],
      ['deleting', 'vexxhost', 7 * Math.abs(Math.sin(step / 2))],
      ['hold', 'vexxhost', step > 14 ? 2 : 0],
      ['in-use', 'gce-europe', 22 * load],
      ['failed', 'gce-europe', step % 9 === 4 ? 2 : 0],
      ['in-use', 'azure-west', 31 * load],
      ['ready', 'azure-west', 6],
    ];
    for (const [state, provider, count] of wanted) {
      const key = `${state} ${provider}`;
      const paths = there.get(key) ?? [];
      there.set(key, paths);
      while (paths.length < Math.round(count))
        paths.push(await page.put('nodes/', nodeRecord(state, provider, page.now), true));
      while (paths.length > Math.round(count)) await page.remove(paths.pop() ?? '');
    }
    await page.clock.advance(STEP_SECONDS * 1000);
  }
}

async function requests(page: PageServer): Promise<void> {
  const add = async (labels: readonly string[], ago: number, more: JsonObject = {}): Promise<string> => {
    const path = await page.put('requests/200-', { ...requestRecord(labels, page.now - ago), ...more }, true);
    return path.slice(path.lastIndexOf('/') + 1);
  };
  const full = 'pool arm of provider gce-europe uses 24 of 24 instances, 1 more is needed';
  const first = await add(['fedora-43-arm64'], 1260);
  page.decisions.record('request', first, 'gce-europe/arm', 'waits for quota', full);
  const pool = 'gce-europe/arm';
  page.recorder.timelines.waits(first, pool, { kind: 'limit', reason: full });
  const many = await add(
    Array.from({ length: 5 }, () => 'fedora-43-arm64'),
    840,
  );
  page.decisions.record('request', many, 'gce-europe/arm', 'waits for quota', full.replace('1 more', '5 more'));
  page.recorder.timelines.waits(many, pool, {
    kind: 'order',
    reason: `request ${first} is served first`,
    behind: first,
  });
  await add(['windows-2025'], 320, { requestor: 'zuul-2.example.org' });
  const building = await add(['debian-12-large', 'debian-12-small', 'debian-12-small'], 45, { state: 'pending' });
  page.decisions.record('request', building, 'vexxhost/main', 'accepted', '3 to launch');
  await page.put(`requests-lock/${building}/${'0'.repeat(32)}__lock__0000000000`, 'nl01');
  await page.clock.settle();
}

async function images(page: PageServer): Promise<void> {
  const build = async (image: string, number: number, state: string, ago: number): Promise<string> => {
    const id = String(number).padStart(32, '0');
    const record = {
      state,
      state_time: page.now - ago,
      builder: 'nb01.example.org',
      builder_id: 'b',
      formats: 'qcow2,raw',
    };
    await page.put(`images/${image}/builds/${id}`, record);
    return `images/${image}/builds/${id}/providers`;
  };
  const upload = (build: string, provider: string, state: string, ago: number, progress?: number): Promise<string> => {
    const record = { state, state_time: page.now - ago, external_id: 'i-1', external_name: 'n', format: 'qcow2' };
    return page.put(
      `${build}/${provider}/images/`,
      { ...record, ...(progress === undefined ? {} : { progress }) },
      true,
    );
  };
  const day = 86_400;
  const old = await build('debian-12', 1, 'ready', 2.1 * day);
  const young = await build('debian-12', 2, 'ready', 0.9 * day);
  for (const provider of ['vexxhost', 'azure-west']) await upload(young, provider, 'ready', 0.85 * day);
  await upload(old, 'gce-europe', 'ready', 2 * day);
  await upload(young, 'gce-europe', 'uploading', 240, 62.4);
  const ubuntu = await build('ubuntu-24.04', 3, 'ready', 0.4 * day);
  await upload(ubuntu, 'vexxhost', 'ready', 0.38 * day);
  await upload(ubuntu, 'azure-west', 'failed', 1900);
  await build('fedora-43', 4, 'failed', 3 * 3600);
  await build('fedora-43', 5, 'building', 700);
  await page.put('images/centos-10/pause', '');
  await page.put('images/centos-10/builds/lock', '');
  await page.clock.settle();
}

function nodeRecord(state: NodeState, provider: string, since: number): JsonObject {
  return { state, state_time: since, created_time: since, provider, pool: 'main', type: ['debian-12-small'] };
}

function requestRecord(labels: readonly string[], since: number): JsonObject {
  const common = { state: 'requested', state_time: since, created_time: since, node_types: [...labels], nodes: [] };
  return { ...common, declined_by: [], reuse: true, requestor: 'zuul-1.example.org', relative_priority: 0 };
}

function activity(
  provider: string,
  limit: ProviderActivity['limit'],
  pools: readonly PoolActivity[],
): ProviderActivity {
  const used: Record<string, number> = {};
  for (const pool of pools)
    for (const [name, amount] of Object.entries(pool.used)) used[name] = (used[name] ?? 0) + amount;
  const health = { state: 'serving', reason: undefined, since: 0, offers: [] } as const;
  // The ids have the format of `registerPool`.
  const registered = pools.map((pool) => ({ ...pool, id: `nl01.example.org-PoolWorker.${provider}-${pool.pool}-0` }));
  return { provider, ...health, limit, used, missingInstances: undefined, pools: registered, deletions: [], work: [] };
}

function pool(
  name: string,
  limit: PoolActivity['limit'],
  used: PoolActivity['used'],
  obstacles: readonly string[],
  waiting: number,
): PoolActivity {
  const labels = [
    { label: 'debian-12-small', obstacle: undefined, cause: undefined },
    ...obstacles.map((label) => ({
      label,
      obstacle: 'its image ubuntu-24.04 is not uploaded to the provider yet',
      cause: 'image' as const,
    })),
  ];
  const idle = { next: undefined, accepting: 0, deferred: 0, outOfCapacity: false, requests: [] };
  return { pool: name, id: '', waiting, ...idle, limit, used, labels };
}
