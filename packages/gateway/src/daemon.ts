/** Creates the resources of a gateway process and stops them. */

import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigWatcher } from '@nodepool/config';
import { systemClock, systemRandom, type Logger } from '@nodepool/core';
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
import { Gateway } from './gateway.js';
import { OTHER_ADDRESS, type GatewayFlags } from './program.js';
import { settingsSource } from './settings/settings-source.js';
import type { Settings } from './settings/settings.js';

export interface GatewayDaemonOptions extends DaemonSetup, Pick<GatewayFlags, 'statusPort' | 'statusAddress'> {
  readonly settings: Settings;
  /** The file of the settings. */
  readonly file: string;
}

export function createGatewayDaemon(options: GatewayDaemonOptions): Daemon {
  return new GatewayDaemon(options);
}

class GatewayDaemon implements Daemon {
  private readonly gateway: Gateway;
  private readonly settings: LiveSettings<Settings>;
  private readonly watcher: ConfigWatcher;
  private readonly zooKeeperWatch: ZooKeeperWatch;
  private readonly eventLoop = new EventLoopMonitor();
  private web: HttpServer | undefined;
  private endReport: () => void = () => undefined;

  constructor(private readonly options: GatewayDaemonOptions) {
    const { zooKeeper, load, loaded, log, metrics, file, settings } = options;
    const clock = systemClock;
    const tasks = { run: this.inBackground.bind(this) };
    this.settings = new LiveSettings(settings, { ...settingsSource(file), clock, log, metrics, tasks });
    this.gateway = new Gateway({
      ...{ zooKeeper, clock, log, metrics, random: systemRandom, settings: this.settings },
      identifier: `${hostname()}-${process.pid}`,
    });
    this.zooKeeperWatch = new ZooKeeperWatch({
      ...{ zooKeeper, clock, metrics },
      onError: (error) => log.error('The latency of ZooKeeper could not be measured', error),
    });
    this.watcher = followConfig({
      ...{ load, loaded, clock, log, metrics, zooKeeper, readAtStart: [] },
      tasks: this.gateway.tasks,
      apply: () => undefined,
    });
  }

  async start(): Promise<void> {
    const { zooKeeper, metrics, log } = this.options;
    this.eventLoop.start();
    this.zooKeeperWatch.start();
    this.endReport = reportProcess({ metrics, zooKeeper, eventLoop: this.eventLoop });
    await this.startWeb();
    const { port } = await this.gateway.start();
    const { listen, tls } = this.settings.current;
    log.info('Gateway listens', { address: listen.address, port, tls: tls !== undefined });
    this.settings.onChange(({ listen: changed }) => {
      if (isDeepStrictEqual(changed, listen)) return;
      log.warn('A changed address takes effect at the next start of the program', { listen: changed });
    });
    await this.settings.start();
    await this.watcher.start();
  }

  reload(): void {
    this.inBackground('reload of the configuration', async () => {
      await Promise.all([this.watcher.reload(), this.settings.reload()]);
    });
  }

  dump(log: Logger): void {
    const { store, tasks } = this.gateway;
    const eventLoopDelay = (): ReturnType<EventLoopMonitor['read']> => this.eventLoop.read();
    dumpProcess({ store, tasks, eventLoopDelay }, log, (to) => this.gateway.dump(to));
  }

  async stop(): Promise<void> {
    await this.watcher.stop();
    await this.settings.stop();
    await this.gateway.stop();
    await this.web?.stop();
    this.endReport();
    this.zooKeeperWatch.stop();
    this.eventLoop.stop();
    await this.options.zooKeeper.close();
  }

  private inBackground(name: string, work: () => Promise<void>): void {
    this.gateway.tasks.run(name, work);
  }

  /** Serves metrics and probes, on a port of their own, because they need no token. */
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
          return this.gateway.ready ? reply.send('OK') : reply.code(503).send('not ready');
        });
      },
    });
    const { port } = await this.web.start(statusPort, statusAddress);
    log.info('Web endpoint listens', { address: statusAddress, port });
  }
}
