/** Creates the resources of a bridge process and stops them. */

import { hostname } from 'node:os';
import type { ConfigWatcher } from '@nodepool/config';
import { packageVersion, systemClock, systemRandom, type Logger } from '@nodepool/core';
import {
  dumpProcess,
  EventLoopMonitor,
  followConfig,
  LiveSettings,
  reportProcess,
  ZooKeeperWatch,
  type Daemon,
  type DaemonSetup,
} from '@nodepool/daemon';
import { addMetricsPage, createHttpServer, type HttpServer } from '@nodepool/daemon/web';
import { Bridge } from './bridge.js';
import { OTHER_ADDRESS, type BridgeFlags } from './program.js';
import { settingsSource } from './settings/settings-source.js';
import type { Settings } from './settings/settings.js';

export interface BridgeDaemonOptions extends DaemonSetup, Pick<BridgeFlags, 'statusPort' | 'statusAddress'> {
  readonly settings: Settings;
  /** The file of the settings. */
  readonly file: string;
}

export function createBridgeDaemon(options: BridgeDaemonOptions): Daemon {
  return new BridgeDaemon(options);
}

class BridgeDaemon implements Daemon {
  private readonly bridge: Bridge;
  private readonly settings: LiveSettings<Settings>;
  private readonly watcher: ConfigWatcher;
  private readonly zooKeeperWatch: ZooKeeperWatch;
  private readonly eventLoop = new EventLoopMonitor();
  private web: HttpServer | undefined;
  private endReport: () => void = () => undefined;

  constructor(private readonly options: BridgeDaemonOptions) {
    const { zooKeeper, load, loaded, log, metrics, file, settings } = options;
    const clock = systemClock;
    this.bridge = new Bridge({
      ...{ zooKeeper, settings, clock, log, metrics, random: systemRandom, env: process.env },
      identifier: `${hostname()}-${process.pid}`,
      version: packageVersion(__dirname),
    });
    const { tasks } = this.bridge;
    this.settings = new LiveSettings(settings, { ...settingsSource(file), clock, log, metrics, tasks });
    this.settings.onChange((changed) => this.bridge.apply(changed));
    this.zooKeeperWatch = new ZooKeeperWatch({
      ...{ zooKeeper, clock, metrics },
      onError: (error) => log.error('The latency of ZooKeeper could not be measured', error),
    });
    this.watcher = followConfig({
      ...{ load, loaded, clock, log, metrics, zooKeeper, tasks, readAtStart: [] },
      apply: () => undefined,
    });
  }

  async start(): Promise<void> {
    const { zooKeeper, metrics } = this.options;
    this.eventLoop.start();
    this.zooKeeperWatch.start();
    this.endReport = reportProcess({ metrics, zooKeeper, eventLoop: this.eventLoop });
    await this.startWeb();
    this.bridge.start();
    await this.settings.start();
    await this.watcher.start();
  }

  reload(): void {
    this.bridge.tasks.run('reload of the configuration', async () => {
      await Promise.all([this.watcher.reload(), this.settings.reload()]);
    });
  }

  dump(log: Logger): void {
    const { store, tasks } = this.bridge;
    const eventLoopDelay = (): ReturnType<EventLoopMonitor['read']> => this.eventLoop.read();
    dumpProcess({ store, tasks, eventLoopDelay }, log, (to) => this.bridge.dump(to));
  }

  async stop(): Promise<void> {
    await this.watcher.stop();
    await this.settings.stop();
    await this.bridge.stop();
    await this.web?.stop();
    this.endReport();
    this.zooKeeperWatch.stop();
    this.eventLoop.stop();
    await this.options.zooKeeper.close();
  }

  private async startWeb(): Promise<void> {
    const { statusPort, statusAddress, log, metrics } = this.options;
    if (statusPort === undefined) return;
    this.web = createHttpServer({
      log: log.named('nodepool.web'),
      otherAddress: OTHER_ADDRESS,
      routes: (app) => {
        addMetricsPage(app, metrics);
        app.get('/live', (_request, reply) => reply.type('text/plain; charset=UTF-8').send('OK'));
        app.get('/ready', (_request, reply) => {
          void reply.type('text/plain; charset=UTF-8').header('Cache-Control', 'no-store');
          return this.bridge.ready ? reply.send('OK') : reply.code(503).send('not ready');
        });
      },
    });
    const { port } = await this.web.start(statusPort, statusAddress);
    log.info('Web endpoint listens', { address: statusAddress, port });
  }
}
