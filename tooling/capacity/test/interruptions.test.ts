/** A node in use whose instance its cloud takes away: one path for every driver, with its simulated cloud. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { loadConfig } from '@nodepool/config';
import { silentLogger, TaskSupervisor, type ExternalId, type JsonObject } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { simulatedTime, type TestTime } from '@nodepool/driver-kit';
import { Launcher } from '@nodepool/launcher';
import { openRequestor, type Interruption, type Lease, type Requestor } from '@nodepool/requestor';
import { openStore, type Store } from '@nodepool/store';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LABEL, type Target } from '../src/matrix/target.js';
import { TARGETS } from '../src/matrix/targets.js';

const LIMIT_MS = 600_000;

/** A running launcher with one driver, and a requestor. */
class Site {
  readonly failures: unknown[] = [];
  private constructor(
    readonly time: TestTime,
    readonly target: Target,
    readonly server: SimulatedZooKeeperServer,
    readonly store: Store,
    readonly launcher: Launcher,
    readonly requestor: Requestor,
  ) {}

  static async start(driver: string, label: JsonObject, minReady: number): Promise<Site> {
    const time = simulatedTime();
    const { clock } = time;
    const random = seededRandom(1);
    const log = silentLogger;
    const open = TARGETS.get(driver);
    if (open === undefined) throw new Error(`there is no driver ${driver}`);
    const target = await open({ clock, random, label });
    const server = new SimulatedZooKeeperServer({ clock });
    const store = openStore(server.connect({ clock, random }), { clock, random, identifier: 'launcher', log });
    const failures: unknown[] = [];
    const tasks = new TaskSupervisor(clock, (_task, error) => void failures.push(error));
    const scanner = { scan: () => Promise.resolve([]) };
    const launcher = new Launcher({ store, clock, random, log, tasks, scanner, hostname: 'launcher', version: '0' });
    const requestor = openRequestor(server.connect({ clock, random }), { name: 'test', clock, random, log });
    store.start();
    const folder = await mkdtemp(join(tmpdir(), 'nodepool-interruptions-'));
    const file = join(folder, 'nodepool.yaml');
    const config = {
      'zookeeper-servers': [{ host: 'localhost' }],
      labels: [{ name: LABEL, 'min-ready': minReady }],
      providers: [{ name: 'cloud', ...target.section }],
    };
    await writeFile(file, JSON.stringify(config));
    const loaded = await loadConfig({ file, env: {}, discoverDriver: () => Promise.resolve(target.driver) });
    await rm(folder, { recursive: true });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    launcher.start(loaded.config).catch((error: unknown) => failures.push(error));
    await time.until(() => launcher.ready, LIMIT_MS);
    const site = new Site(time, target, server, store, launcher, requestor);
    site.failures.push(...failures);
    return site;
  }

  async run<T>(work: Promise<T>): Promise<T> {
    const ended = { value: false };
    const settled = work.finally(() => (ended.value = true));
    settled.catch(() => undefined);
    await this.time.until(() => ended.value, LIMIT_MS);
    return settled;
  }

  lease(): Promise<Lease> {
    return this.run(this.requestor.acquire({ labels: [LABEL] }));
  }

  ready(): readonly string[] {
    return [...this.store.nodes.inState('ready')].map(({ id }) => id);
  }

  externalIdOf(node: string): ExternalId {
    return this.store.nodes.get(node)?.node.external_id ?? '';
  }

  async stop(): Promise<void> {
    await this.run(this.requestor.close());
    await this.run(this.launcher.stop());
    this.server.stop();
    await this.run(this.target.close());
    expect(this.failures).toEqual([]);
  }
}

let site: Site;
afterEach(() => site.stop());

/**
 * The label's keys for spot instances, and the kind of the interruption, by driver. Azure deletes evicted VMs within seconds,
 * so lists lack them.
 */
const DRIVERS: readonly (readonly [string, JsonObject, string])[] = [
  ['aws', { 'use-spot': true }, 'reclaimed'],
  ['gce', { 'provisioning-model': 'spot' }, 'reclaimed'],
  ['azure', { spot: true, 'hardware-profile': { 'vm-size': 'Standard_D4s_v5' } }, 'missing'],
  ['kubernetes', {}, 'reclaimed'],
  ['openstack', {}, 'failed'],
];

describe.each(DRIVERS)('with driver %s', (driver, label, kind) => {
  it('a node in use that is taken away is recorded, and its holder is told', async () => {
    site = await Site.start(driver, label, 0);
    const { clock } = site.time;
    const lease = await site.lease();
    const [node] = lease.nodes;
    const id = node?.id ?? '';
    const told: Interruption[] = [];
    lease.onInterruption((each) => told.push(each));
    await site.time.until(() => false, 30_000);
    expect(told).toEqual([]);
    const takenAt = clock.now();
    site.target.takeAway(site.externalIdOf(id));
    await site.time.until(() => told.length > 0, LIMIT_MS);
    expect(told).toMatchObject([{ nodeId: id, kind }]);
    expect(site.store.nodes.get(id)?.node).toMatchObject({ state: 'in-use', interruption: { kind } });
    // AWS announces it; the next list shows the others.
    const limitMs = driver === 'aws' ? 30_000 : 120_000;
    expect(clock.now() - takenAt).toBeLessThan(limitMs);
    if (driver === 'aws') expect(told[0]?.endsAt).toBeGreaterThan(takenAt + 100_000);
    await site.run(lease.return());
    await site.time.until(() => [...site.store.nodes.all()].length === 0, LIMIT_MS);
    expect([...site.store.nodes.all()]).toEqual([]);
  });
});

describe.each(DRIVERS.slice(0, 3))('with driver %s', (driver, label) => {
  it('a ready node that is taken away is replaced and not handed out', async () => {
    site = await Site.start(driver, label, 1);
    await site.time.until(() => site.ready().length === 1, LIMIT_MS);
    await site.time.until(() => false, 90_000);
    const [lost = ''] = site.ready();
    site.target.takeAway(site.externalIdOf(lost));
    await site.time.until(() => !site.ready().includes(lost), LIMIT_MS);
    const lease = await site.lease();
    expect(lease.nodes.map(({ id }) => id)).not.toContain(lost);
    await site.run(lease.return());
    await site.time.until(() => site.ready().length === 1, LIMIT_MS);
    expect(site.ready()).not.toContain(lost);
  });
});
