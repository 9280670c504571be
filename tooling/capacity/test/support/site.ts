/** A running launcher with one driver and its simulated cloud, and a requestor, on simulated time. */

import { expect } from '@jest/globals';
import { loadConfig } from '@nodepool/config';
import {
  silentLogger,
  TaskSupervisor,
  type ExternalId,
  type JsonObject,
  type JsonValue,
  type Metrics,
} from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { simulatedTime, type TestTime } from '@nodepool/driver-kit';
import { Launcher } from '@nodepool/launcher';
import { openRequestor, type Lease, type Requestor } from '@nodepool/requestor';
import { openStore, type Store } from '@nodepool/store';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LABEL, type OpenTarget, type Target } from '../../src/matrix/target.js';

/** Time limit of a wait (ms of simulated time). */
export const LIMIT_MS = 600_000;

export interface SiteOptions {
  /** Further keys of the label in the pool. */
  readonly label?: JsonObject;
  /** Further keys of the label. */
  readonly labels?: JsonObject;
  /** Further keys of the pool. */
  readonly pool?: JsonObject;
  readonly metrics?: Metrics;
}

export class Site {
  private constructor(
    readonly time: TestTime,
    readonly target: Target,
    readonly server: SimulatedZooKeeperServer,
    readonly store: Store,
    readonly launcher: Launcher,
    readonly requestor: Requestor,
    /** Failures of background work. */
    readonly failures: readonly unknown[],
  ) {}

  static async start(
    open: OpenTarget,
    { label = {}, labels = {}, pool = {}, metrics }: SiteOptions = {},
  ): Promise<Site> {
    const time = simulatedTime();
    const { clock } = time;
    const random = seededRandom(1);
    const log = silentLogger;
    const target = await open({ clock, random, label });
    const server = new SimulatedZooKeeperServer({ clock });
    const store = openStore(server.connect({ clock, random }), { clock, random, identifier: 'launcher', log });
    const failures: unknown[] = [];
    const tasks = new TaskSupervisor(clock, (_task, error) => void failures.push(error));
    const scanner = { scan: () => Promise.resolve([]) };
    const identity = { hostname: 'launcher', version: '0' };
    const sinks = metrics === undefined ? {} : { metrics };
    const launcher = new Launcher({ store, clock, random, log, tasks, scanner, ...identity, ...sinks });
    const requestor = openRequestor(server.connect({ clock, random }), { name: 'test', clock, random, log });
    store.start();
    const folder = await mkdtemp(join(tmpdir(), 'nodepool-interruptions-'));
    const file = join(folder, 'nodepool.yaml');
    const pools = target.section['pools'] as readonly JsonValue[];
    const config = {
      'zookeeper-servers': [{ host: 'localhost' }],
      labels: [{ name: LABEL, ...labels }],
      providers: [
        { name: 'cloud', ...target.section, pools: pools.map((each) => ({ ...(each as JsonObject), ...pool })) },
      ],
    };
    await writeFile(file, JSON.stringify(config));
    const loaded = await loadConfig({ file, env: {}, discoverDriver: () => Promise.resolve(target.driver) });
    await rm(folder, { recursive: true });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    launcher.start(loaded.config).catch((error: unknown) => failures.push(error));
    await time.until(() => launcher.ready, LIMIT_MS);
    return new Site(time, target, server, store, launcher, requestor, failures);
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
