/** A launcher process with all parts of a real one, which can be killed at any moment. */

import { TaskSupervisor, type Driver, type JsonObject, type Logger, type RandomSource } from '@nodepool/core';
import { openStore } from '@nodepool/store';
import type { ExampleCloud } from '@nodepool/driver-example';
import { Launcher, type LoginScanner } from '@nodepool/launcher';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { ZooKeeper } from '@nodepool/zookeeper';
import type { Checker } from './checker.js';
import { cloudView, type CloudLink, type CloudFaults } from './cloud-view.js';
import type { DriverFaults } from './faulty-driver.js';
import { mortalClient } from './mortal-client.js';
import type { Mutation } from './mutation.js';
import { changingProviders } from './mutators.js';
import { type SimulatedProcess, overlay } from '@nodepool/simulated-process';
import { DEFAULT_USER, nodepoolConfig, WHOLE_SITE, type Site } from './site.js';

const SESSION_TIMEOUT_MS = 9000;

export interface LauncherEnvironment {
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ExampleCloud;
  readonly cloudFaults: CloudFaults;
  readonly driverFaults: DriverFaults;
  readonly checker: Checker;
  readonly random: RandomSource;
  readonly scanner: LoginScanner;
  readonly log: Logger;
  readonly mutation: Mutation | undefined;
}

export class LauncherProcess {
  readonly zooKeeper: ZooKeeper;
  readonly link: CloudLink = { state: 'open' };
  /** Configurations that it has received and may still act upon. */
  private configs: Site[];
  private readonly launcher: Launcher;
  private readonly cloud: ExampleCloud;
  private readonly closeStore: () => void;
  private ending = false;
  /** Time of the last configuration, milliseconds since the start. */
  configuredAt: number;
  /** Time of the last fault that affected it, milliseconds since the start. */
  disturbedAt = -Infinity;
  /** Steps until it dies; undefined if its death is not planned. */
  private stepsToLive: number | undefined;

  constructor(
    readonly process: SimulatedProcess,
    private readonly environment: LauncherEnvironment,
    site: Site,
  ) {
    const { server, checker, random, scanner, log, mutation } = environment;
    this.configs = [site];
    this.configuredAt = process.clock.monotonic();
    this.zooKeeper = server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS, clock: process.clock, random });
    const path = {
      process,
      link: this.link,
      cloudFaults: environment.cloudFaults,
      observer: checker,
      atStep: () => this.atStep(),
    };
    const view = cloudView(environment.cloud, path);
    this.cloud = mutation?.cloud?.(view) ?? view;
    const { clock, name } = process;
    const store = openStore(this.watchedClient(), { clock, random, identifier: name, log });
    this.closeStore = () => store.close();
    const tasks = new TaskSupervisor(clock, (task, error) =>
      checker.step(`${name} failed to ${task}: ${String(error)}`),
    );
    this.launcher = new Launcher({
      store: mutation?.store?.(store) ?? store,
      clock,
      random,
      log,
      tasks,
      scanner,
      hostname: name,
      version: '0.0.0',
    });
    store.start();
    tasks.run('start the launcher', () => this.launcher.start(this.configOf(site)));
  }

  get name(): string {
    return this.process.name;
  }

  /** True if it is not killed, stopped or about to be. */
  get alive(): boolean {
    return !this.process.dead && !this.ending;
  }

  get site(): Site {
    return this.configs.at(-1) ?? WHOLE_SITE;
  }

  /** All configurations that it may act upon now, newest last; empty if it is dead. */
  get sites(): readonly Site[] {
    return this.process.dead ? [] : this.configs;
  }

  /** Returns true if no configuration gives it a reason to stop serving the provider. */
  keepsProvider(name: string): boolean {
    if (!this.alive) return false;
    const versions = this.configs.map(({ providers }) => JSON.stringify(providers.find((each) => each.name === name)));
    return versions[0] !== undefined && new Set(versions).size === 1;
  }

  /** Returns true if all configurations that it may act upon have the machine of the node. */
  hasMachine({ hostname, username: user }: JsonObject): boolean {
    return this.configs.every(({ providers }) =>
      providers.some(({ pools }) =>
        pools.some(({ machines = [] }) =>
          machines.some(({ name, username = DEFAULT_USER }) => name === hostname && username === user),
        ),
      ),
    );
  }

  /** Applies another configuration. */
  async apply(site: Site): Promise<void> {
    this.configs = [...this.configs, site];
    this.configuredAt = this.process.clock.monotonic();
    await this.launcher.apply(this.configOf(site));
    this.configs = this.configs.slice(this.configs.indexOf(site));
  }

  /** Stops it like an operator does. */
  async stop(): Promise<void> {
    this.ending = true;
    await this.launcher.stop();
    this.closeStore();
    await this.zooKeeper.close();
    this.process.kill();
  }

  /** Kills it without closing its session, which lives on until it expires. */
  kill(): void {
    this.process.kill();
    this.environment.server.partition(this.zooKeeper, 'cut');
  }

  /** Kills it right before or after its `steps`th change from now on, in ZooKeeper or in the cloud. */
  killAfter(steps: number): void {
    this.stepsToLive = steps;
  }

  /** Pauses it (SIGSTOP). The network delays data that is sent to it. */
  pause(): void {
    this.process.pause();
    this.environment.server.partition(this.zooKeeper, 'silent');
  }

  resume(): void {
    this.process.resume();
    this.environment.server.heal(this.zooKeeper);
  }

  private configOf(site: Site): ReturnType<typeof nodepoolConfig> {
    const { mutation, driverFaults } = this.environment;
    const spoil = (driver: Driver): Driver => {
      const watched = this.watchedDriver(driver);
      return mutation?.driver?.(watched) ?? watched;
    };
    return nodepoolConfig(mutation?.config?.(site) ?? site, this.cloud, driverFaults, spoil);
  }

  /** Called before and after each change that it makes. */
  private atStep(): void {
    if (this.stepsToLive === undefined || this.process.dead) return;
    this.stepsToLive -= 1;
    if (this.stepsToLive > 0) return;
    this.environment.checker.step(`${this.name} dies between two steps`);
    this.kill();
  }

  /** Returns a driver that shows every complete listing to the checker. */
  private watchedDriver(driver: Driver): Driver {
    const { name, clock } = this.process;
    const { checker } = this.environment;
    return changingProviders((provider) =>
      overlay(provider, {
        listNodes: async (call) => {
          const requestedAt = clock.now();
          const instances = await provider.listNodes(call);
          checker.listed({ launcher: name, provider: provider.config.name, requestedAt, instances });
          return instances;
        },
      }),
    )(driver);
  }

  /** Returns a client that shows every write to the checker. The process may die before or after each write. */
  private watchedClient(): ZooKeeper {
    const { process } = this;
    const { mutation, checker } = this.environment;
    return mortalClient(mutation?.client?.(this.zooKeeper) ?? this.zooKeeper, {
      isDead: () => process.dead,
      atStep: () => this.atStep(),
      writing: (ops) => {
        const written = mutation?.writes?.(ops) ?? ops;
        checker.writing(process, written);
        return written;
      },
    });
  }
}
