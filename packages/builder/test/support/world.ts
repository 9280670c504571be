/** A world for builders: a simulated ZooKeeper, a cloud of images, disks that outlive builders, one virtual clock. */

import {
  loadImageUploadSettings,
  silentLogger,
  TaskSupervisor,
  type Clock,
  type ImageTests,
  type ImageUploadSettings,
  type JsonObject,
  type Logger,
  type Metrics,
  type Provider,
  type ProviderConfig,
  type RandomSource,
  type DiskImageConfig,
} from '@nodepool/core';
import { openStore, type Store } from '@nodepool/store';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import type { NodepoolConfig } from '@nodepool/config';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { Builder, type PostUploadHook } from '../../src/index.js';
import { ImageCloud, imageDriver } from './image-cloud.js';
import { MemoryDisk } from './memory-disk.js';
import { ScriptedDib } from './scripted-dib.js';
import { ScriptedBootTester, ScriptedSources } from './scripted-tests.js';

/** Time limit of a wait in a test, milliseconds of virtual time. */
const UPLOAD_START_DELAY_MS = 48 * 3_600_000;
/**
 * Long, to avoid heartbeats during hours of virtual time. Divisible by three, so that heartbeats are at whole
 * milliseconds.
 */
const SESSION_TIMEOUT_MS = 90_000;

export interface ProviderOptions {
  readonly images: readonly string[];
  readonly format?: string;
  readonly pause?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly upload?: Partial<ImageUploadSettings>;
  /** Tests of the uploads of all its images. */
  readonly tests?: ImageTests;
}

export interface Site {
  readonly images: Readonly<Record<string, Partial<DiskImageConfig>>>;
  readonly providers: Readonly<Record<string, ProviderOptions>>;
}

/** A machine, whose disk survives the death of its builder. */
export interface Machine {
  readonly name: string;
  readonly builderId: string;
  readonly disk: MemoryDisk;
}

export interface RunningBuilder {
  readonly builder: Builder;
  readonly machine: Machine;
  readonly dib: ScriptedDib;
  readonly bootTester: ScriptedBootTester;
  readonly sources: ScriptedSources;
  readonly store: Store;
  readonly zk: ZooKeeper;
  /** Failures in the background without another handler. */
  readonly failures: string[];
  apply(site: Site): void;
  /** Stops the builder as an operator would. */
  stop(): Promise<void>;
}

/** A stored record with the names in its path. */
export type StoredRecord = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly build: string;
  readonly provider: string;
};

export class World {
  readonly clock = new VirtualClock();
  readonly random: RandomSource;
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ImageCloud;
  /** The log of builders that are started from now on. */
  log: Logger = silentLogger;
  metrics: Metrics | undefined;
  hook: PostUploadHook = () => Promise.resolve();
  /** Returns the provider that the driver returns, for drivers with defects. */
  getProvider = (provider: Provider): Provider => provider;
  workers: { readonly buildWorkers?: number; readonly uploadWorkers?: number } = {};
  /** Difference (ms) of the wall clock of ZooKeeper to that of the builders. */
  serverAheadMs = 0;
  private readonly builders: RunningBuilder[] = [];
  private machines = 0;
  private operatorStore: Store | undefined;

  constructor(seed = 1) {
    this.random = seededRandom(seed);
    this.server = new SimulatedZooKeeperServer({ clock: this.serverClock(), latencyMs: () => 1 });
    this.cloud = new ImageCloud(seededRandom(seed + 1));
  }

  machine(name = `builder-${this.machines + 1}`): Machine {
    this.machines += 1;
    return { name, builderId: `id-of-${name}`, disk: new MemoryDisk() };
  }

  config({ images, providers }: Site): NodepoolConfig {
    const driver = imageDriver((provider) => this.cloud.manager(provider, this.clock));
    const getProvider = (config: ProviderConfig): Provider => this.getProvider(driver.getProvider(config));
    return nodepoolConfig({ images, providers }, { ...driver, getProvider });
  }

  /** Starts a builder and waits until its caches are complete. */
  async builder(site: Site, machine = this.machine()): Promise<RunningBuilder> {
    const zk = this.server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS });
    const { clock, random, log } = this;
    const store = openStore(zk, { clock, random, identifier: machine.name, log });
    const failures: string[] = [];
    const tasks = new TaskSupervisor(clock, (name, error) => failures.push(`${name}: ${String(error)}`));
    const dib = new ScriptedDib(machine.disk, clock);
    const bootTester = new ScriptedBootTester(clock);
    const sources = new ScriptedSources(machine.disk);
    const builder = new Builder({
      store,
      clock,
      random,
      log,
      tasks,
      ...(this.metrics === undefined ? {} : { metrics: this.metrics }),
      hostname: machine.name,
      fqdn: `${machine.name}.example.org`,
      version: '0.0.0',
      builderId: machine.builderId,
      files: machine.disk,
      creator: dib,
      bootTester,
      sources,
      hook: (call) => this.hook(call),
      ...this.workers,
    });
    store.start();
    builder.start(this.config(site));
    const running: RunningBuilder = {
      ...{ builder, machine, dib, bootTester, sources, store, zk, failures },
      apply: (next) => builder.apply(this.config(next)),
      stop: async () => {
        await this.during(builder.stop());
        store.close();
        await this.during(zk.close());
      },
    };
    this.builders.push(running);
    await this.during(store.ready());
    return running;
  }

  /** Returns an operator's store. */
  async operator(): Promise<Store> {
    if (this.operatorStore !== undefined) return this.operatorStore;
    const store = openStore(this.server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS }), {
      clock: this.clock,
      random: this.random,
      identifier: 'operator',
    });
    store.start();
    await this.during(store.ready());
    this.operatorStore = store;
    return store;
  }

  /** Advances time until the condition holds. */
  async until(what: string, condition: () => boolean): Promise<void> {
    if (!(await this.clock.runUntil(condition, UPLOAD_START_DELAY_MS))) {
      throw new Error(`timed out waiting until ${what}\n${this.describe()}`);
    }
  }

  /** Advances time until the promise settles. */
  async during<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = work.finally(() => (settled = true));
    done.catch(() => undefined);
    await this.until('the work is done', () => settled);
    return done;
  }

  /** Advances time by `ms`. */
  async after(ms: number): Promise<void> {
    await this.clock.advance(ms);
  }

  /** Returns the records of builds, oldest first. */
  builds(image: string): StoredRecord[] {
    return this.recordsBelow(`/nodepool/images/${image}/builds/`, 1);
  }

  /** Returns the records of uploads of all builds, oldest first. */
  uploads(image: string, provider: string): StoredRecord[] {
    return this.recordsBelow(`/nodepool/images/${image}/builds/`, 5).filter(
      ({ provider: other }) => other === provider,
    );
  }

  readyBuilds(image: string): number {
    return this.builds(image).filter(({ state }) => state === 'ready').length;
  }

  readyUploads(image: string, provider: string): number {
    return this.uploads(image, provider).filter(({ state }) => state === 'ready').length;
  }

  paths(): string[] {
    return [...this.server.dump().keys()];
  }

  /** Stops everything that the test has started. Resolves with the unhandled failures. */
  async end(): Promise<string[]> {
    for (const { stop } of this.builders) await stop();
    this.operatorStore?.close();
    if (this.operatorStore !== undefined) await this.during(this.operatorStore.zooKeeper.close());
    return this.builders.flatMap(({ failures }) => failures);
  }

  private serverClock(): Clock {
    return {
      now: () => this.clock.now() + this.serverAheadMs,
      monotonic: () => this.clock.monotonic(),
      schedule: (delayMs, callback) => this.clock.schedule(delayMs, callback),
    };
  }

  private recordsBelow(root: string, depth: number): StoredRecord[] {
    return [...this.server.dump()]
      .flatMap(([path, { data }]): StoredRecord[] => {
        const parts = path.startsWith(root) ? path.slice(root.length).split('/') : [];
        const id = parts.at(-1) ?? '';
        if (parts.length !== depth || data.length === 0 || id.includes('lock')) return [];
        const record = JSON.parse(Buffer.from(data).toString()) as JsonObject;
        return [{ ...record, id, build: parts[0] ?? '', provider: parts[2] ?? '' }];
      })
      .sort((a, b) => Number(a['state_time']) - Number(b['state_time']));
  }

  private describe(): string {
    return [...this.server.dump()]
      .map(([path, { data }]) => `${path} ${Buffer.from(data).toString()}`)
      .concat(this.builders.flatMap(({ failures }) => failures))
      .join('\n');
  }
}

/** Returns the configuration of a site, as if read from a file. */
export function nodepoolConfig(site: Site, driver: ReturnType<typeof imageDriver>): NodepoolConfig {
  return {
    webapp: { port: 0, listenAddress: '127.0.0.1' },
    elementsDir: undefined,
    imagesDir: '/images',
    buildLogDir: '/logs',
    buildLogRetention: 7,
    zookeeper: { servers: [], chroot: '', tls: undefined, sessionTimeoutMs: SESSION_TIMEOUT_MS },
    labels: new Map(),
    maxHoldAgeMs: Infinity,
    diskImages: new Map(Object.entries(site.images).map(([name, more]) => [name, diskImage(name, more)])),
    providers: new Map(Object.entries(site.providers).map(([name, options]) => [name, providerConfig(name, options)])),
    brokenProviders: new Map(),
    tenantLimits: new Map(),
    drivers: new Map(),
    loadedDrivers: new Map([['images', driver]]),
  };
}

export function diskImage(name: string, more: Partial<DiskImageConfig> = {}): DiskImageConfig {
  return {
    name,
    abstract: false,
    parent: undefined,
    formats: [],
    keepFormats: [],
    deleteAfterUpload: false,
    rebuildAgeMs: 86_400_000,
    release: undefined,
    buildTimeoutMs: 28_800_000,
    elements: ['debian-minimal'],
    envVars: {},
    pause: false,
    username: 'zuul',
    pythonPath: 'auto',
    shellType: undefined,
    dibCmd: 'disk-image-create',
    metadata: {},
    ...more,
  };
}

function providerConfig(name: string, options: ProviderOptions): ProviderConfig {
  const { images, format = 'qcow2', pause = false, metadata = {}, upload = {}, tests } = options;
  return {
    name,
    driver: 'images',
    priority: 100,
    maxConcurrency: Infinity,
    launchRetries: 3,
    launchTimeoutMs: 3_600_000,
    bootTimeoutMs: 60_000,
    callsPerSecond: Infinity,
    pools: new Map(),
    diskImages: new Map(
      images.map((image) => [image, { name: image, pause, metadata, ...(tests === undefined ? {} : { tests }) }]),
    ),
    imageFormat: format,
    imageUpload: { ...loadImageUploadSettings({}), ...upload },
    section: { name, diskimages: [...images], pause, ...(format === 'qcow2' ? {} : { format }) },
  };
}
