/**
 * A test environment for launchers: a simulated ZooKeeper, an example cloud and requestors, all on one virtual clock.
 */

import { TaskSupervisor, silentLogger, type JsonObject, type Logger, type RandomSource } from '@nodepool/core';
import { openStore, type Store } from '@nodepool/store';
import { seededRandom, VirtualClock } from '@nodepool/core/testing';
import type { NodepoolConfig } from '@nodepool/config';
import { ExampleCloud, exampleDriver } from '@nodepool/driver-example';
import { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { Launcher } from '../../src/index.js';
import type { LauncherOptions, LoginScanner } from '../../src/context.js';
import { type DecisionLog, type Recorder, Timelines } from '@nodepool/status';
import type { ExplanationSources } from '@nodepool/status/web';
import { Requestor, type RequestOptions } from './requestor.js';

export const REQUESTS = '/nodepool/requests';

/** Time limit of a wait, in milliseconds of virtual time. */
const WAIT_LIMIT_MS = 600_000;

export interface RunningLauncher {
  readonly launcher: Launcher;
  readonly store: Store;
  readonly zk: ZooKeeper;
  /** Failures of background work. */
  readonly failures: string[];
  /** Stops the launcher as an operator would. */
  stop(): Promise<void>;
}

/** Returns a pool section with these labels. */
export function pool(name: string, labels: readonly string[], more: JsonObject = {}): JsonObject {
  return {
    name,
    labels: labels.map((label) => ({ name: label, 'cloud-image': 'debian', size: 'small' })),
    'host-key-checking': false,
    ...more,
  };
}

/** Returns a provider section with these pools. */
export function provider(name: string, pools: readonly JsonObject[], more: JsonObject = {}): JsonObject {
  return { name, driver: 'example', 'cloud-images': [{ name: 'debian', username: 'root' }], pools, ...more };
}

export class World {
  readonly clock = new VirtualClock();
  readonly random: RandomSource;
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ExampleCloud;
  readonly requestor: Requestor;
  /** Scans the logins of nodes for all launchers; replace it to change the host keys that they find. */
  scanner: LoginScanner = { scan: () => Promise.resolve(['ssh-ed25519 AAAA']) };
  /** Logger of launchers that are started from now on. */
  log: Logger = silentLogger;
  /** Metrics and decisions of launchers that are started from now on. */
  observation: Pick<LauncherOptions, 'metrics' | 'decisions'> = {};
  /** Makes the recorders of launchers that are started from now on; without it, they have timelines only. */
  recorder: ((store: Store) => Recorder) | undefined;
  /** Replaces parts of launchers that are started from now on, e.g. to record spans. */
  traced: ((store: Store) => Partial<LauncherOptions>) | undefined;
  /** Timelines of the launchers, by host. */
  readonly timelines = new Map<string, Timelines>();
  private readonly launchers: RunningLauncher[] = [];
  private readonly requestorClient: ZooKeeper;

  /** `latencyMs` returns the latency of a message to or from ZooKeeper. */
  constructor(seed = 1, latencyMs: (random: RandomSource) => number = () => 0) {
    this.random = seededRandom(seed);
    const network = seededRandom(seed);
    this.server = new SimulatedZooKeeperServer({ clock: this.clock, latencyMs: () => latencyMs(network) });
    this.cloud = new ExampleCloud({ clock: this.clock, random: seededRandom(2) });
    this.requestorClient = this.server.connect();
    this.requestor = new Requestor(this.requestorClient, this.clock);
  }

  /** Returns a configuration with these provider sections; `more` replaces other parsed properties. */
  config(providers: readonly JsonObject[], more: Partial<NodepoolConfig> = {}): NodepoolConfig {
    const driver = exampleDriver({ cloud: this.cloud });
    const labels = new Set(['small', 'large', 'other']);
    const problems: string[] = [];
    const context = {
      diskImages: more.diskImages ?? new Map(),
      labels,
      problem: (path: readonly (string | number)[], { expected }: { expected: string }) => {
        problems.push(`${path.join('.')}: ${expected}`);
      },
    };
    const configs = providers.map((section) => driver.getProviderConfig(section, context));
    if (problems.length > 0) throw new Error(problems.join('; '));
    return {
      webapp: { port: 0, listenAddress: '127.0.0.1' },
      elementsDir: undefined,
      imagesDir: undefined,
      buildLogDir: '',
      buildLogRetention: 7,
      zookeeper: { servers: [], chroot: '', tls: undefined, sessionTimeoutMs: 10_000 },
      labels: new Map(),
      maxHoldAgeMs: Infinity,
      diskImages: new Map(),
      providers: new Map(configs.map((config) => [config.name, config])),
      brokenProviders: new Map(),
      tenantLimits: new Map(),
      drivers: new Map(),
      loadedDrivers: new Map([['example', driver]]),
      ...more,
    };
  }

  /** Starts a launcher and waits until it is ready. */
  async launcher(
    providers: readonly JsonObject[],
    hostname = 'launcher1',
    more: Partial<NodepoolConfig> = {},
  ): Promise<RunningLauncher> {
    const zk = this.server.connect();
    const store = openStore(zk, { clock: this.clock, random: this.random, identifier: hostname, log: this.log });
    const failures: string[] = [];
    const tasks = new TaskSupervisor(this.clock, (name, error) => failures.push(`${name}: ${String(error)}`));
    const onError = (error: unknown): void => void failures.push(String(error));
    const recorder = this.recorder?.(store);
    const reports = (id: string, poolId: string | null): boolean => launcher.reports(id, poolId);
    const timelines = recorder?.timelines ?? new Timelines({ store, clock: this.clock, onError, reports });
    if (recorder === undefined) timelines.start();
    else await recorder.start();
    this.timelines.set(hostname, timelines);
    const launcher: Launcher = new Launcher({
      store,
      clock: this.clock,
      random: this.random,
      log: this.log,
      tasks,
      scanner: { scan: (login) => this.scanner.scan(login) },
      hostname,
      version: '0.0.0',
      timelines,
      ...this.observation,
      ...this.traced?.(store),
    });
    store.start();
    await launcher.start(this.config(providers, more));
    const running: RunningLauncher = {
      launcher,
      store,
      zk,
      failures,
      stop: async () => {
        await this.during(launcher.stop());
        store.close();
        await this.during(zk.close());
      },
    };
    this.launchers.push(running);
    await this.until('the launcher serves its pools', () => launcher.ready);
    return running;
  }

  /** Returns the sources of a launcher's explanations. */
  explanation(
    { store, launcher }: Pick<RunningLauncher, 'store' | 'launcher'>,
    decisions: DecisionLog,
    hostname = 'launcher1',
  ): ExplanationSources {
    const timelines = this.timelines.get(hostname);
    if (timelines === undefined) throw new Error(`no launcher on ${hostname}`);
    const queuePosition = launcher.queuePosition.bind(launcher);
    const readyTarget = launcher.readyTarget.bind(launcher);
    const activity = launcher.activity.bind(launcher);
    return { store, clock: this.clock, decisions, activity, timelines, queuePosition, readyTarget };
  }

  /** Advances the clock until the condition holds. */
  async until(what: string, condition: () => boolean): Promise<void> {
    const deadline = this.clock.monotonic() + WAIT_LIMIT_MS;
    while (!condition()) {
      if (this.clock.monotonic() > deadline) throw new Error(`timed out waiting until ${what}\n${this.describe()}`);
      await this.clock.runNext();
    }
  }

  /** Advances the clock until the promise settles. */
  async during<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = work.finally(() => (settled = true));
    done.catch(() => undefined);
    await this.until('the work is done', () => settled);
    return done;
  }

  /** Submits a request. Resolves with its id. */
  async submit(labels: readonly string[], options: RequestOptions = {}): Promise<string> {
    return this.during(this.requestor.submit(labels, options));
  }

  /** Submits `count` equal requests at the same time. Resolves with their ids. */
  async submitEach(count: number, labels: readonly string[]): Promise<string[]> {
    return this.during(Promise.all(Array.from({ length: count }, () => this.requestor.submit(labels))));
  }

  /** Submits a request and waits until it is fulfilled. Resolves with its id. */
  async served(labels: readonly string[], options: RequestOptions = {}): Promise<string> {
    const id = await this.submit(labels, options);
    await this.inState(id, 'fulfilled');
    return id;
  }

  /** Waits until the request is fulfilled. Resolves with the ids of its nodes. */
  async fulfilled(id: string): Promise<string[]> {
    await this.inState(id, 'fulfilled');
    return this.records(REQUESTS).get(id)?.nodes as string[];
  }

  /** Resolves with a request that its requestor has deleted as soon as it was fulfilled. */
  async deletedWhenServed(labels: readonly string[]): Promise<string> {
    const stop = this.server.onCommit(() => {
      for (const [id, { state }] of this.records('/nodepool/requests')) {
        if (state === 'fulfilled') void this.requestor.withdraw(id);
      }
    });
    const id = await this.submit(labels);
    await this.until('the request is deleted', () => this.stateOf(id) === undefined);
    stop();
    return id;
  }

  /** Takes and returns the nodes of a fulfilled request; a launcher then deletes them. */
  async giveBack(id: string): Promise<void> {
    await this.during(this.requestor.giveBack(await this.during(this.requestor.take(id))));
  }

  /** Waits until the request has the state. */
  async inState(id: string, state: string): Promise<void> {
    await this.until(`request ${id} is ${state}`, () => this.stateOf(id) === state);
  }

  /** Returns the state of the request, or undefined if it does not exist. */
  stateOf(id: string): unknown {
    return this.records(REQUESTS).get(id)?.state;
  }

  /** Returns the records directly below a path, as JSON objects by name. */
  records(parent: string): Map<string, JsonObject> {
    const found = new Map<string, JsonObject>();
    for (const [path, { data }] of this.server.dump()) {
      if (!path.startsWith(`${parent}/`) || path.slice(parent.length + 1).includes('/')) continue;
      found.set(path.slice(parent.length + 1), JSON.parse(Buffer.from(data).toString()) as JsonObject);
    }
    return found;
  }

  /** Returns the id of the installation, which the first launcher creates. */
  installation(): string {
    return Buffer.from(this.server.dump().get('/nodepool/installation')?.data ?? []).toString();
  }

  nodes(): Map<string, JsonObject> {
    return this.records('/nodepool/nodes');
  }

  /** Returns the paths of all lock contenders. */
  lockHolders(): string[] {
    return [...this.server.dump().keys()].filter((path) => path.includes('__lock__'));
  }

  /** Stops all launchers and clients. Resolves with the failures of background work. */
  async end(): Promise<string[]> {
    for (const { stop } of this.launchers) await stop();
    await this.during(this.requestorClient.close());
    this.cloud.close();
    return this.launchers.flatMap(({ failures }) => failures);
  }

  private describe(): string {
    return [...this.server.dump()]
      .map(([path, { data }]) => `${path} ${Buffer.from(data).toString()}`)
      .concat(this.launchers.flatMap(({ failures }) => failures))
      .join('\n');
  }
}

/** Returns the part of a configuration that limits tenants; `limits` is by their names. */
export function tenants(limits: Record<string, Record<string, number>>): Pick<NodepoolConfig, 'tenantLimits'> {
  return { tenantLimits: new Map(Object.entries(limits)) };
}
