/** A launcher's web endpoint over a simulated ZooKeeper with a virtual clock. */

import { DecisionLog, Recorder, RecentFailures, type ProviderActivity } from '@nodepool/status';
import { createWebServer, type WebServer } from '@nodepool/status/web';
import { NODEPOOL_ROOT, openStore, type Store } from '@nodepool/store';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import { silentLogger, silentMetrics, type JsonObject } from '@nodepool/core';
import type { ConfigProblem, NodepoolConfig } from '@nodepool/config';
import { ensurePath, type ZooKeeper } from '@nodepool/zookeeper';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';

type PageConfig = Pick<NodepoolConfig, 'providers' | 'brokenProviders' | 'driverPackages' | 'diskImages' | 'labels'>;

/** Noon of an otherwise uneventful day. */
const START_MS = Date.UTC(2026, 10, 20, 12, 0, 0);

export class PageServer {
  readonly clock = new VirtualClock({ startMs: START_MS });
  readonly decisions = new DecisionLog({ clock: this.clock });
  readonly failures = new RecentFailures(this.clock);
  /** Records errors and warnings. */
  readonly log = this.failures.watch(silentLogger);
  activity: readonly ProviderActivity[] = [];
  config: PageConfig = {
    ...{ providers: new Map(), brokenProviders: new Map(), diskImages: new Map(), labels: new Map() },
  };
  problems: readonly ConfigProblem[] = [];
  refusedSince: number | undefined;
  ready = true;
  version = '1.4.0';
  readonly store: Store;
  /** Timelines and history, recorded from `start` on. */
  readonly recorder: Recorder;
  private readonly zooKeeper = new SimulatedZooKeeperServer({ clock: this.clock });
  private readonly client: ZooKeeper = this.zooKeeper.connect();
  /** Connection for records of other programs. */
  private readonly others: ZooKeeper = this.zooKeeper.connect();
  private recording = false;
  private web: WebServer;
  private address = { port: 0 };

  constructor() {
    this.store = openStore(this.client, { clock: this.clock, random: seededRandom(1), identifier: 'nl01' });
    this.recorder = new Recorder({
      ...{ store: this.store, clock: this.clock, log: silentLogger, metrics: silentMetrics, stateDir: undefined },
      activity: () => this.activity,
    });
    this.store.start();
    this.web = this.makeWeb();
  }

  get url(): string {
    return `http://127.0.0.1:${this.address.port}/`;
  }

  /** Unix seconds. */
  get now(): number {
    return this.clock.now() / 1000;
  }

  async start(): Promise<void> {
    await this.clock.runUntil(() => this.store.complete);
    if (!this.recording) await this.recorder.start();
    this.recording = true;
    this.address = await this.web.start({ ...this.address, address: '127.0.0.1', otherAddress: '' });
  }

  /** Stops the launcher; its port no longer answers. */
  async stop(): Promise<void> {
    await this.web.stop();
  }

  /** Starts the launcher again on the same port. */
  async startAgain(): Promise<void> {
    this.web = this.makeWeb();
    await this.start();
  }

  /** Closes all parts. */
  async close(): Promise<void> {
    await this.stop();
    this.store.close();
  }

  /** Writes a record at a path below `/nodepool` and resolves with the full path. */
  async put(path: string, record: JsonObject | string, sequential = false): Promise<string> {
    return this.during(this.write(path, record, sequential));
  }

  /** Writes `count` sequential records. */
  async putMany(path: string, record: JsonObject, count: number): Promise<void> {
    await this.during(Promise.all(Array.from({ length: count }, () => this.write(path, record, true))));
  }

  /** Replaces a record. */
  async change(path: string, record: JsonObject): Promise<void> {
    await this.during(this.others.set(path, Buffer.from(JSON.stringify(record))));
  }

  async remove(path: string): Promise<void> {
    await this.during(this.others.delete(path));
  }

  loseZooKeeper(): void {
    this.zooKeeper.partition(this.client);
  }

  async findZooKeeper(): Promise<void> {
    this.zooKeeper.heal(this.client);
    await this.clock.runUntil(() => this.store.complete);
  }

  private makeWeb(): WebServer {
    return createWebServer({
      store: this.store,
      log: this.log,
      clock: this.clock,
      isReady: () => this.ready,
      explain: {
        decisions: this.decisions,
        activity: () => this.activity,
        timelines: this.recorder.timelines,
        queuePosition: () => undefined,
        readyTarget: () => undefined,
      },
      status: {
        hostname: 'nl01.example.org',
        version: this.version,
        config: () => this.config,
        problems: () => this.problems,
        refusedSince: () => this.refusedSince,
        failures: this.failures,
        recorder: this.recorder,
        capacity: () => ({ pools: [], providers: [], tenants: [] }),
        eventLoopDelay: () => ({ p99: 0.001 }),
      },
    });
  }

  private async write(path: string, record: JsonObject | string, sequential: boolean): Promise<string> {
    const data = Buffer.from(typeof record === 'string' ? record : JSON.stringify(record));
    const whole = `${NODEPOOL_ROOT}/${path}`;
    await ensurePath(this.others, whole.slice(0, whole.lastIndexOf('/')));
    // The registry ignores persistent znodes.
    const life = path.startsWith('components/') ? 'ephemeral' : 'persistent';
    const { path: made } = await this.others.create(whole, data, { mode: sequential ? `${life}-sequential` : life });
    return made;
  }

  private async during<T>(work: Promise<T>): Promise<T> {
    let ended = false;
    const watched = work.finally(() => (ended = true));
    // The promise is awaited below, where its failure is handled.
    watched.catch(() => undefined);
    await this.clock.runUntil(() => ended);
    return watched;
  }
}
