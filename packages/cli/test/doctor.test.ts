/** `nodepool doctor` on a whole site. */

import { createServer, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ZooKeeperChrootError } from '@nodepool/store';
import { ensurePath, type ZooKeeper } from '@nodepool/zookeeper';
import { sizeText } from '../src/doctor/disk.js';
import type { Finding } from '../src/doctor/finding.js';
import { fakeZooKeeper, SRVR } from './fake-zookeeper.js';
import { World } from './world.js';

let world: World;
let server: Server;
let zooKeeperPort: number;
let stopZooKeeper: () => Promise<void>;
/** The offset of the launcher's clock, in seconds. */
let offset: number;
/** Milliseconds between a question to the launcher and its answer. */
let delayMs: number;
/** Answers that wait for the clock. */
let delayed: number;
/** The problems of the launcher; undefined if it has no status page. */
let reported: readonly unknown[] | undefined;

beforeEach(async () => {
  world = new World();
  await world.start();
  offset = 0;
  delayMs = 0;
  delayed = 0;
  reported = [];
  server = createServer(({ url }, response) => {
    delayed += 1;
    world.clock.schedule(delayMs, () => answer(url, response));
  });
  const answer = (url: string | undefined, response: ServerResponse): void => {
    response.sendDate = false;
    response.setHeader('Date', new Date(world.clock.now() + offset * 1000).toUTCString());
    if (url === '/ready') response.end('OK');
    else if (reported === undefined) response.writeHead(404).end('no such page');
    else response.end(JSON.stringify({ launcher: { hostname: 'nl01' }, problems: reported }));
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const fake = await fakeZooKeeper(SRVR);
  zooKeeperPort = fake.port;
  stopZooKeeper = () => fake.stop();
});

afterEach(async () => {
  await stopZooKeeper();
  server.close();
  await once(server, 'close');
  await world.stop();
});

function config(more: { cloud?: string; pools?: string; rest?: string } = {}): Promise<void> {
  const { cloud = '', pools = '{name: main, max-servers: 4, labels: [{name: small, cloud-image: debian}]}' } = more;
  return world.writeConfig(`
zookeeper-servers: [{host: 127.0.0.1, port: ${zooKeeperPort}}]
labels: [{name: small}]
build-log-dir: /nonexistent/logs
providers: [{name: cloud, driver: example, ${cloud} cloud-images: [{name: debian}], pools: [${pools}]}]
${more.rest ?? ''}
`);
}

/** Registers a launcher with a web endpoint, and its pool. */
async function launcher(version = '1.2.3'): Promise<void> {
  await world.launcher({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }, { version });
  await world.pool(['small']);
}

interface Examination {
  readonly code: number | undefined;
  readonly findings: readonly Finding[];
  readonly problems: readonly string[];
}

async function examine(...args: string[]): Promise<Examination> {
  const { code, out } = await world.run('doctor', '-o', 'json', ...args);
  const findings = JSON.parse(out.printed) as readonly Finding[];
  const problems = findings
    .filter(({ severity }) => severity === 'error' || severity === 'warning')
    .map((finding) => `${finding.severity} ${finding.check} ${finding.object}: ${finding.reason}`);
  for (const { severity, remedy } of findings) expect(remedy === null).toBe(severity === 'ok' || severity === 'info');
  return { code, findings, problems };
}

describe('nodepool doctor', () => {
  it('finds no problem on a healthy site, checks everything, and writes nothing', async () => {
    await config({ rest: 'images-dir: /nonexistent/images' });
    await launcher();
    await world.node({ state: 'ready', type: ['small'] });
    const before = [...world.server.dump().entries()].map(([path, { data }]) => [path, Buffer.from(data).toString()]);
    const { code, findings, problems } = await examine();
    expect([code, problems]).toEqual([0, []]);
    expect(new Set(findings.map(({ check }) => check))).toEqual(
      new Set([
        ...['configuration', 'zookeeper', 'certificates', 'clocks', 'programs', 'problems', 'providers', 'records'],
        'disk',
      ]),
    );
    const after = [...world.server.dump().entries()].map(([path, { data }]) => [path, Buffer.from(data).toString()]);
    expect(after).toEqual(before);
  });

  it('shows the most severe problem first with a remedy, and counts', async () => {
    await config();
    const { code, out } = await world.run('doctor');
    expect(code).toBe(1);
    expect(out.printed.split('\n').slice(0, 2)).toEqual([
      'error    programs: launchers: none is registered: no request is served',
      expect.stringMatching(/^ +→ start nodepool-launcher; one that runs may wait for ZooKeeper: /),
    ]);
    expect(out.noted).toContain('nodepool: 1 error, 0 warnings');
  });

  it('runs the other checks without ZooKeeper', async () => {
    await config({ cloud: "endpoint: 'http://127.0.0.1:1'," });
    world.connectError = new Error('no server answers');
    const { code, problems } = await examine();
    expect(code).toBe(1);
    expect(problems).toEqual([
      'error zookeeper connection: no server answers',
      expect.stringMatching(/^error providers provider cloud: .*the connection to http:\/\/127\.0\.0\.1:1\/v1 broke/),
      `warning programs launchers and builders: unknown: ZooKeeper (127.0.0.1:${zooKeeperPort}) cannot be used from here; launchers and builders may be waiting for it`,
    ]);
  });

  it('names the znode to create if the chroot does not exist', async () => {
    await world.writeConfig(`zookeeper-servers: [{host: 127.0.0.1, port: ${zooKeeperPort}, chroot: /ci/nodepool}]\n`);
    world.connectError = new ZooKeeperChrootError([`127.0.0.1:${zooKeeperPort}`], '/ci/nodepool');
    const { code, findings } = await examine();
    expect(code).toBe(1);
    expect(findings.find(({ check, severity }) => check === 'zookeeper' && severity === 'error')).toMatchObject({
      object: 'connection',
      reason: expect.stringMatching(/^the chroot \/ci\/nodepool does not exist in ZooKeeper \([^)]+\)$/),
      remedy:
        "correct it in zookeeper-servers, or create it with ZooKeeper's own client: create /ci, create /ci/nodepool",
    });
  });

  it('states nothing that only the records show without ZooKeeper', async () => {
    await config({
      rest: 'images-dir: /nonexistent/images\ntenant-resource-limits: [{tenant-name: t, max-servers: 3}]',
    });
    world.connectError = new Error('no server answers');
    const texts = (await examine()).findings.map(({ object, reason }) => `${object}: ${reason}`);
    expect(texts).toContain('build-log-dir /nonexistent/logs: is not on this machine');
    expect(texts.filter((text) => text.includes('in use'))).toEqual([]);
  });

  it('examines no folder of a builder on a site without images', async () => {
    await config();
    await launcher();
    expect((await examine()).findings.filter(({ check }) => check === 'disk')).toEqual([]);
  });

  it('reports every problem of an invalid configuration', async () => {
    await world.writeConfig('zookeeper-servers: []\ncolour: red\n');
    const { code, problems } = await examine();
    expect([code, problems.length]).toEqual([1, 3]);
    expect(problems[1]).toMatch(/^error configuration .*colour/);
    expect(problems[2]).toMatch(/^warning configuration all other checks: nothing else was examined$/);
  });

  it('does not create records in a new ensemble', async () => {
    await config();
    const empty = world.useEmptyEnsemble();
    const { problems } = await examine();
    expect(problems).toEqual([
      expect.stringContaining('/nodepool: does not exist: no Nodepool has used this ensemble'),
    ]);
    expect([...empty.dump().keys()].filter((path) => path.startsWith('/nodepool'))).toEqual([]);
  });

  it('compares clocks', async () => {
    await config();
    await launcher();
    offset = 90;
    const { problems } = await examine();
    expect(problems).toEqual([
      expect.stringMatching(/^warning clocks 127\.0\.0\.1:\d+: is 90 s ahead of this machine$/),
    ]);
    offset = -1;
    await world.node({ state_time: world.clock.now() / 1000 + 30, type: ['small'] });
    expect((await examine()).problems).toEqual([
      'warning clocks ZooKeeper: its records have changes that are 30 s in the future of this machine',
    ]);
  });

  it('takes no slow answer for a wrong clock', async () => {
    await config();
    await launcher();
    delayMs = 9000;
    const running = world.cli('doctor', '-o', 'json');
    await world.until(() => delayed === 2);
    await world.clock.advance(delayMs);
    await world.until(() => running.code !== undefined);
    const findings = JSON.parse(running.out.printed) as readonly Finding[];
    expect(findings.find(({ check }) => check === 'clocks')).toMatchObject({
      severity: 'ok',
      reason: 'differs from this machine by less than 11 s',
    });
  });

  it('reports launchers that are not ready, different versions, and labels and providers without launcher', async () => {
    await config({
      pools:
        '{name: main, max-servers: 4, labels: [{name: small, cloud-image: debian}]}, ' +
        '{name: idle, max-servers: 0, labels: [{name: small, cloud-image: debian}]}',
    });
    await launcher('9.9.9');
    await world.launcher({ host: '127.0.0.1', port: 1 }, { version: '9.9.8' });
    const { problems } = await examine();
    expect(problems).toEqual([
      expect.stringMatching(/^warning programs 127\.0\.0\.1:1: the launcher at .* cannot be asked/),
      'warning programs launcher on host: version 9.9.9, unlike others',
      'warning programs launcher on host: version 9.9.8, unlike others',
    ]);
  });

  it('names the reason why a pool serves no requests', async () => {
    await config();
    await world.launcher();
    await world.pool(['small'], { trouble: { state: 'unreachable', reason: 'no answer', since: 0 } });
    const { findings } = await examine();
    expect(findings).toContainEqual(
      expect.objectContaining({
        object: 'pool cloud/main',
        reason: 'launches no nodes; its provider is unreachable: no answer',
      }),
    );
    await world.pool(['small'], { hostname: 'other', id: 'other-1' });
    expect((await examine()).findings.map(({ object }) => object)).toContain('pool cloud/main of launcher host');
  });

  it('accepts that launchers, builders and the command line have versions of their own', async () => {
    await config({ pools: '{name: main, max-servers: 4, labels: [{name: small, cloud-image: debian}]}' });
    await launcher('9.9.9');
    await world.builder('images', '9.8.7');
    const { findings, problems } = await examine();
    expect(problems).toEqual([]);
    const programs = findings.filter(({ check, reason }) => check === 'programs' && reason.startsWith('version'));
    expect(programs.map(({ severity, object, reason }) => [severity, object, reason])).toEqual([
      ['ok', 'launcher on host', 'version 9.9.9'],
      ['ok', 'builder on images', 'version 9.8.7'],
    ]);
  });

  it('reports providers and labels without a pool', async () => {
    await config({ rest: 'max-hold-age: 3600' });
    await world.launcher();
    expect((await examine()).problems).toEqual([
      'warning programs provider cloud: no registered launcher serves it',
      'warning programs label small: no registered pool serves it',
    ]);
  });

  it('names components that no session owns, which are not counted', async () => {
    await config();
    await launcher();
    const path = '/nodepool/components/pool/gone0000000007';
    const data = { hostname: 'gone', id: 'gone', provider_name: 'cloud', name: 'main', supported_labels: ['small'] };
    await world.finish(world.store.zooKeeper.create(path, Buffer.from(JSON.stringify(data))));
    await world.until(() => [...world.store.components.withoutSession()].length === 1);
    expect((await examine()).problems).toEqual([
      `warning programs ${path}: a component that no session owns: it is ignored`,
    ]);
  });

  it('compares limits with their usage', async () => {
    await config({
      pools: '{name: main, max-servers: 2, labels: [{name: small, cloud-image: debian}]}',
      rest: 'tenant-resource-limits: [{tenant-name: t1, max-servers: 2}]',
    });
    await launcher();
    for (let count = 0; count < 2; count += 1) await world.node({ tenant_name: 't1', resources: { instances: 1 } });
    expect((await examine()).problems).toEqual([
      'warning providers pool cloud/main: 2 of 2 in use (max-servers)',
      'warning providers tenant t1: 2 of 2 in use (instances)',
    ]);
  });

  it('stops a hanging check of a cloud at a deadline', async () => {
    await config({ cloud: "endpoint: 'http://127.0.0.1:9'," });
    const hanging = await fakeZooKeeper(undefined);
    await config({ cloud: `endpoint: 'http://127.0.0.1:${hanging.port}',` });
    await launcher();
    const running = world.cli('doctor', '-o', 'json');
    while (running.code === undefined) await world.clock.advance(500);
    await hanging.stop();
    expect(JSON.parse(running.out.printed)).toContainEqual(
      expect.objectContaining({ severity: 'error', object: 'provider cloud', check: 'providers' }),
    );
  });

  it('stops when interrupted', async () => {
    await config();
    await launcher();
    const running = world.cli('doctor');
    running.interrupt();
    await world.until(() => running.code !== undefined);
    expect(running.code).toBe(1);
  });

  it('reports a builder with missing folders', async () => {
    await config({ rest: 'images-dir: /nonexistent/images\ndiskimages: [{name: debian, formats: [qcow2]}]' });
    await launcher();
    expect((await examine()).problems).toEqual([
      'warning programs builders: none is registered: no image is built or uploaded',
    ]);
    await world.builder(hostname(), '1.2.3');
    expect((await examine()).problems).toEqual([
      expect.stringMatching(
        /^error disk images-dir \/nonexistent\/images: cannot be examined: there is no such folder$/,
      ),
      expect.stringMatching(
        /^error disk build-log-dir \/nonexistent\/logs: cannot be examined: there is no such folder$/,
      ),
    ]);
  });
});

it.each([
  [0, '0 KiB'],
  [1_000_000, '976 KiB'],
  [20 * 2 ** 20, '20 MiB'],
  [9 * 2 ** 30, '9216 MiB'],
  [66.9 * 2 ** 30, '66 GiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
});

describe('the problems of launchers', () => {
  const unreachable = {
    ...{ key: 'provider cloud', severity: 'critical', title: 'Provider cloud is unreachable' },
    ...{ details: ['no answer'], effect: '1 request hangs on it', remedy: 'Check the network.' },
  };

  it('are findings with reason, age, effect and remedy, each once', async () => {
    await config();
    await launcher();
    reported = [
      { ...unreachable, since: world.clock.now() / 1000 - 240 },
      { ...unreachable, severity: 'warning' },
      { ...unreachable, severity: 'warning', details: ['it refuses the credentials'] },
      { key: 'failed big', severity: 'warning', title: '2 requests for the label big failed', remedy: 'Look.' },
      { key: 'failed big', severity: 'warning', title: '11 requests for the label big failed', remedy: 'Look.' },
      { key: 'image deb11', severity: 'warning', title: 'Image deb11 is missing', remedy: 'Look.' },
      { key: 'image deb12', severity: 'warning', title: 'Image deb12 is missing', remedy: 'Look.' },
      { key: 'provider cloud on nl01', severity: 'critical', title: 'the same, seen by another', launcher: 'nl01' },
      { key: 'provider cloud on nl02', severity: 'warning', title: 'Launcher nl02 sees trouble', launcher: 'nl02' },
      { key: 'failed small', severity: 'info', title: '1 request failed; it is over', remedy: null, details: [7] },
      'no problem',
    ];
    const { code, findings } = await examine();
    expect(code).toBe(1);
    expect(findings.filter(({ check }) => check === 'problems')).toMatchObject([
      {
        ...{ severity: 'error', object: 'Provider cloud is unreachable for 4 min' },
        ...{ reason: 'no answer; effect: 1 request hangs on it', remedy: 'Check the network.' },
      },
      { severity: 'warning', reason: 'it refuses the credentials; effect: 1 request hangs on it' },
      { severity: 'warning', object: '11 requests for the label big failed' },
      { severity: 'warning', object: 'Image deb11 is missing' },
      { severity: 'warning', object: 'Image deb12 is missing' },
      { severity: 'warning', object: 'Launcher nl02 sees trouble' },
      { severity: 'info', object: '1 request failed; it is over', remedy: null },
    ]);
  });

  it('are unknown if a launcher does not report them', async () => {
    await config();
    await launcher();
    reported = undefined;
    const { problems } = await examine();
    expect(problems).toEqual([
      expect.stringMatching(/^warning problems 127.*: its problems are unknown: .*no such page/),
    ]);
  });
});

describe('the check of records', () => {
  const old = (): number => world.clock.now() / 1000 - 4000;

  beforeEach(async () => {
    await config({ pools: '{name: main, max-servers: 99, labels: [{name: small, cloud-image: debian}]}' });
    await launcher();
  });

  it('reports abandoned records, and no similar ones', async () => {
    reported = undefined;
    const ids = {
      interrupted: await world.node({ state: 'building', state_time: old() }),
      abandoned: await world.node({ state: 'in-use', state_time: old() }),
      undeleted: await world.node({ state: 'deleting', state_time: old() }),
      lost: await world.node({ state: 'ready', state_time: old(), allocated_to: '200-0000009999' }),
      orphan: await world.node({ provider: 'sold', state: 'ready' }),
      renamed: await world.node({ pool: 'former', state: 'ready', state_time: old() }),
      moved: await world.node({ type: ['former'], state: 'ready', state_time: old() }),
      waiting: await world.request({ state_time: old() }),
      vanished: await world.request({ state: 'pending', state_time: old() }),
    };
    // Nodes and requests that launchers and requestors work on, or that are young.
    const busy = await world.node({ state: 'building', state_time: old() });
    const used = await world.node({ state: 'in-use', state_time: old() });
    for (const id of [busy, used]) await world.finish(world.store.nodes.lock(id));
    await world.node({ state: 'building' });
    await world.node({ state: 'deleting' });
    await world.node({ state: 'ready', state_time: old() });
    await world.node({ type: ['former', 'small'], state: 'ready', state_time: old() });
    await world.node({ pool: 'former', state: 'ready' });
    await world.node({ state: 'hold', state_time: old() });
    await world.node({ state: 'ready', state_time: old(), allocated_to: ids.waiting });
    await world.request({});
    await world.finish(world.store.zooKeeper.create('/nodepool/nodes/0000000099', Buffer.from('{"state":')));
    const { findings } = await examine();
    const found = findings.filter(({ check, severity }) => check === 'records' && severity !== 'info');
    expect(found.map(({ object }) => object).sort()).toEqual(
      [
        `nodes ${ids.interrupted}`,
        `nodes ${ids.abandoned}`,
        `nodes ${ids.undeleted}`,
        `nodes ${ids.lost}`,
        `nodes ${ids.orphan}`,
        `nodes ${ids.renamed}, ${ids.moved}`,
        `requests ${ids.waiting}`,
        `requests ${ids.vanished}`,
        '/nodepool/nodes/0000000099',
      ].sort(),
    );
  });

  it('reports requests that no registered launcher has locked', async () => {
    const aged = (): Promise<string> => world.request({ state_time: old() });
    const [own, foreign, stuck] = [await aged(), await aged(), await aged()];
    const other = world.server.connect({ sessionTimeoutMs: 12_000 });
    const lock = async (zk: ZooKeeper, id: string, suffix = ''): Promise<void> => {
      await world.finish(ensurePath(zk, `/nodepool/requests-lock/${id}`));
      const path = `/nodepool/requests-lock/${id}/${'a'.repeat(32)}__lock__${suffix}`;
      const mode = suffix === '' ? 'ephemeral-sequential' : 'persistent';
      await world.finish(zk.create(path, Buffer.from('nl02-77'), { mode }));
    };
    await lock(world.store.zooKeeper, own);
    await lock(other, foreign);
    await lock(other, stuck, '0000000000');
    expect((await examine()).problems).toEqual([
      `warning records requests ${own}, ${foreign}, ${stuck}: 3 requests: waiting for more than an hour`,
      `warning records request ${stuck}: is locked by a znode of no session, which never disappears`,
      `warning records requests ${foreign}: locked by nl02-77, which is no registered launcher`,
    ]);
    await world.finish(other.close());
  });

  it('names a few of many records', async () => {
    for (let count = 0; count < 8; count += 1) await world.node({ provider: 'sold' });
    // The launchers report them.
    expect((await examine()).problems).toEqual([]);
    reported = undefined;
    const { problems } = await examine();
    expect(problems).toEqual([
      expect.stringContaining('its problems are unknown'),
      expect.stringMatching(
        /^warning records nodes (\d{10}, ){4}\d{10} and 3 more: 8 nodes: their provider is neither/,
      ),
    ]);
  });

  it('reports an image whose last build failed, with the log', async () => {
    reported = undefined;
    const lock = (await world.finish(world.store.images.tryLockBuilding('debian')))!;
    const failure = {
      build: 'a'.repeat(32),
      reason: 'exit',
      message: 'exit status 1',
      log: '/logs/a.log',
      builder: 'nb01',
    };
    await world.finish(lock.recordFailure({ time: world.clock.now() / 1000, ...failure }));
    await world.finish(lock.release());
    const { findings } = await examine();
    expect(findings).toContainEqual({
      ...{
        check: 'records',
        severity: 'warning',
        object: 'image debian',
        reason: 'its last build failed: exit status 1',
      },
      remedy: 'read /logs/a.log on nb01; `nodepool image-build debian` tries again',
    });
  });

  it('reports uploads of an unknown provider, and an image in progress without a builder', async () => {
    await world.upload(await world.build('debian', 'a'.repeat(32)), 'sold');
    await world.finish(world.store.images.tryLockBuilding('fedora'));
    expect((await examine()).problems).toEqual([
      'warning records image fedora: is locked for building, but no builder is registered',
      'warning records provider sold: is neither configured here nor served, but has 1 upload',
    ]);
    const data = { hostname: 'nl02', id: 'nl02-1', provider_name: 'sold', name: 'main', supported_labels: [] };
    const path = '/nodepool/components/pool/nl020000000007';
    await world.finish(world.store.zooKeeper.create(path, Buffer.from(JSON.stringify(data)), { mode: 'ephemeral' }));
    expect((await examine()).problems).toEqual([expect.stringContaining('image fedora: is locked for building')]);
  });
});
