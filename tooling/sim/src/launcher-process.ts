/** One launcher process: everything that a real one has, in a process that can be killed at any moment. */

import { TaskSupervisor, openStore, type Logger, type RandomSource } from '@nodepool/core';
import type { ExampleCloud } from '@nodepool/driver-example';
import { Launcher, type LoginScanner } from '@nodepool/launcher';
import type { SimulatedZooKeeperServer, TransactionOp, ZooKeeper } from '@nodepool/zookeeper';
import type { Checker } from './checker.js';
import { cloudView, type CloudLink } from './cloud-view.js';
import type { Mutation } from './mutation.js';
import type { SimulatedProcess } from './process.js';
import { overlay } from './proxy.js';
import { nodepoolConfig, type SiteConfig } from './site.js';

const SESSION_TIMEOUT_MS = 9000;

export interface LauncherSurroundings {
  readonly server: SimulatedZooKeeperServer;
  readonly cloud: ExampleCloud;
  readonly checker: Checker;
  readonly random: RandomSource;
  readonly scanner: LoginScanner;
  readonly log: Logger;
  readonly mutation: Mutation | undefined;
}

export class LauncherProcess {
  readonly zooKeeper: ZooKeeper;
  readonly link: CloudLink = { state: 'open' };
  /** What it has been configured with, and may still act upon. */
  private configs: SiteConfig[];
  private readonly launcher: Launcher;
  private readonly cloud: ExampleCloud;
  private readonly closeStore: () => void;
  private ending = false;

  constructor(
    readonly process: SimulatedProcess,
    private readonly surroundings: LauncherSurroundings,
    site: SiteConfig,
  ) {
    const { server, checker, random, scanner, log, mutation } = surroundings;
    this.configs = [site];
    this.zooKeeper = server.connect({ sessionTimeoutMs: SESSION_TIMEOUT_MS, clock: process.clock, random });
    const view = cloudView(surroundings.cloud, process, this.link, checker);
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

  /** Neither killed, nor stopped, nor about to be. */
  get alive(): boolean {
    return !this.process.dead && !this.ending;
  }

  get site(): SiteConfig {
    return this.configs.at(-1) ?? [];
  }

  /** The greatest `max-servers` of a pool that this launcher may act upon now. */
  maxServers(provider: string, pool: string): number | undefined {
    if (this.process.dead) return undefined;
    const limits = this.configs.flatMap((config) =>
      config
        .filter(({ name }) => name === provider)
        .flatMap(({ pools }) => pools.filter(({ name }) => name === pool).map(({ maxServers }) => maxServers)),
    );
    return limits.length === 0 ? undefined : Math.max(...limits);
  }

  /** Goes on with another configuration. */
  async apply(site: SiteConfig): Promise<void> {
    this.configs = [...this.configs, site];
    await this.launcher.apply(this.configOf(site));
    this.configs = this.configs.slice(this.configs.indexOf(site));
  }

  /** Ends it as an operator does. */
  async stop(): Promise<void> {
    this.ending = true;
    await this.launcher.stop();
    this.closeStore();
    await this.zooKeeper.close();
    this.process.kill();
  }

  /** Ends it without a farewell: its session lives on until it expires. */
  kill(): void {
    this.process.kill();
    this.surroundings.server.partition(this.zooKeeper, 'cut');
  }

  /** SIGSTOP: what is sent to it is held up by its network. */
  pause(): void {
    this.process.pause();
    this.surroundings.server.partition(this.zooKeeper, 'silent');
  }

  resume(): void {
    this.process.resume();
    this.surroundings.server.heal(this.zooKeeper);
  }

  private configOf(site: SiteConfig): ReturnType<typeof nodepoolConfig> {
    return nodepoolConfig(this.surroundings.mutation?.config?.(site) ?? site, this.cloud);
  }

  /** The client, with everything that it writes shown to the checker. */
  private watchedClient(): ZooKeeper {
    const { zooKeeper, process } = this;
    const { mutation, checker } = this.surroundings;
    const write = (ops: readonly TransactionOp[]): readonly TransactionOp[] => {
      const written = mutation?.writes?.(ops) ?? ops;
      checker.writing(process, written);
      return written;
    };
    return overlay(zooKeeper, {
      transaction: (ops, options) => zooKeeper.transaction(write(ops), options),
      set: (path, data, options = {}) => {
        const { version } = options;
        write([{ type: 'set', path, data, ...(version === undefined ? {} : { version }) }]);
        return zooKeeper.set(path, data, options);
      },
      delete: (path, options = {}) => {
        const { version } = options;
        write([{ type: 'delete', path, ...(version === undefined ? {} : { version }) }]);
        return zooKeeper.delete(path, options);
      },
    });
  }
}
