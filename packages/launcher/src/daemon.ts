/** Everything that a running launcher process holds, from start to stop. */

import { hostname } from 'node:os';
import {
  ConfigWatcher,
  NodeScanner,
  TaskSupervisor,
  formatProblem,
  openStore,
  systemClock,
  systemRandom,
  type ConfigProblem,
  type LoadOptions,
  type LoadResult,
  type Logger,
  type Store,
} from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { Launcher } from './launcher.js';
import { packageVersion } from './version.js';
import { createWebServer, type WebServer } from './web/index.js';

export interface DaemonOptions {
  /** Closed by `stop`. */
  readonly zooKeeper: ZooKeeper;
  readonly load: LoadOptions;
  /** What `load` gave. */
  readonly loaded: Extract<LoadResult, { ok: true }>;
  readonly log: Logger;
  /** Whether to listen for the web. */
  readonly webapp: boolean;
}

export class Daemon {
  private readonly log: Logger;
  private readonly tasks: TaskSupervisor;
  private readonly store: Store;
  private readonly launcher: Launcher;
  private readonly watcher: ConfigWatcher;
  private readonly web: WebServer;
  private readonly onHangUp = (): void =>
    this.tasks.run('reload of the configuration', async () => {
      await this.watcher.reload();
    });

  constructor(private readonly options: DaemonOptions) {
    const clock = systemClock;
    const random = systemRandom;
    const { zooKeeper, load, loaded, log } = options;
    this.log = log;
    this.tasks = new TaskSupervisor(clock, (task, error) => log.error('Background work failed', error, { task }));
    zooKeeper.on('state', (state) => log.info('ZooKeeper connection', { state }));
    this.store = openStore(zooKeeper, { clock, random, identifier: `${hostname()}-${process.pid}`, log });
    this.launcher = new Launcher({
      store: this.store,
      clock,
      random,
      log,
      tasks: this.tasks,
      scanner: new NodeScanner({ clock }),
      hostname: hostname(),
      version: packageVersion(),
    });
    this.watcher = new ConfigWatcher({
      ...load,
      initial: loaded,
      clock,
      tasks: this.tasks,
      listener: {
        changed: (config) => {
          log.info('Applying the changed configuration');
          this.tasks.run('apply the configuration', () => this.launcher.apply(config));
        },
        refused: (problems) => this.refuse(problems),
      },
    });
    this.web = createWebServer({ store: this.store, log, clock, isReady: () => this.launcher.ready });
  }

  /** Rejects when the web endpoint cannot listen; everything else starts in the background. */
  async start(): Promise<void> {
    const { config } = this.options.loaded;
    this.store.start();
    if (this.options.webapp) {
      const { port } = await this.web.start(config.webapp.port, config.webapp.listenAddress);
      this.log.info('Web endpoint listens', { address: config.webapp.listenAddress, port });
    }
    await this.launcher.start(config);
    await this.watcher.start();
    process.on('SIGHUP', this.onHangUp);
  }

  /** Lets go of everything, so that it can be taken up again. */
  async stop(): Promise<void> {
    process.off('SIGHUP', this.onHangUp);
    await this.watcher.stop();
    await this.web.stop();
    await this.launcher.stop();
    this.store.close();
    await this.options.zooKeeper.close();
  }

  private refuse(problems: readonly ConfigProblem[]): void {
    this.log.error('The changed configuration is refused; the one before stays in force', undefined, {
      problems: problems.map(formatProblem),
    });
  }
}
